import { HOUR_MS } from "#lib/units.ts";
import { toSourceAddress } from "../sources/source-event.ts";
import type { VerdictEvent, VerdictEvidence } from "./evidence.ts";

/** An address sends what it usually does if it sends at most so many times the most of an hour of the day before. */
const USUAL_TIMES = 1.5;
/** So few events more than usual are chance. */
const CHANCE = 2;

/** The events that rose, and those that would have come anyway. */
export interface Foreground {
  readonly events: readonly VerdictEvent[];
  /** Number of events of addresses that send as much as before. */
  readonly background: number;
}

/**
 * Divides the events of an alert's window. The background is of addresses whose rate is what it was in the 24 hours before. If
 * everything is, the alert is a wave of the usual senders: then all of it is in the foreground.
 */
export function splitForeground({
  events,
  usualSenders,
  since,
  judgedAt,
}: Pick<VerdictEvidence, "events" | "usualSenders" | "since" | "judgedAt">): Foreground {
  if (usualSenders.size === 0) return { events, background: 0 };
  const hours = Math.max((judgedAt - since) / HOUR_MS, 0.25);
  const bySender = Map.groupBy(events, ({ ip }) => toSourceAddress(ip));
  const isUsual = (address: string, sent: number) => {
    const usual = usualSenders.get(address) ?? 0;
    return usual > 0 && sent <= USUAL_TIMES * usual * Math.max(hours, 1) + CHANCE;
  };
  const usual = new Set(
    [...bySender].flatMap(([address, sent]) => (isUsual(address, sent.length) ? [address] : [])),
  );
  const rose = events.filter(({ ip }) => !usual.has(toSourceAddress(ip)));
  return rose.length === 0
    ? { events, background: 0 }
    : { events: rose, background: events.length - rose.length };
}
