import { type AlertRecord, lastHeardAt, type NotifyReason, toldChannels } from "./alert-record.ts";
import { REPEAT_INTERVAL_MS } from "./notify-reason.ts";

/** Who may hear of an alert now, by its routes. */
export interface Listeners {
  readonly channels: readonly string[];
  /** By channel; four hours without. */
  readonly repeatIntervalMs?: ReadonlyMap<string, number>;
}

/**
 * Who hears of a transition. News goes to every channel of its routes; a repeat to those that have not heard for long
 * enough; an update or a resolve only to those that have something to update or to close, a resolve wherever the routes
 * lead by now.
 */
export function pickChannels(input: {
  readonly reason: NotifyReason;
  readonly alert: AlertRecord | null;
  readonly channels: readonly string[];
  readonly isSilenced: boolean;
  /** Every channel there is; `channels` without. */
  readonly configured?: readonly string[];
  /** Those of `channels` that are due; all without. */
  readonly due?: readonly string[];
}): readonly string[] {
  const { reason, alert, isSilenced } = input;
  const channels = [...new Set(input.channels)];
  const told: ReadonlySet<string> = alert === null ? new Set() : toldChannels(alert);
  if (reason === "resolved") return [...new Set(input.configured ?? channels)].filter((one) => told.has(one));
  if (isSilenced) return [];
  if (reason === "advice") return channels.filter((channel) => told.has(channel));
  return reason === "repeat" ? (input.due ?? channels) : channels;
}

/** The channels that are to hear again that an alert still fires. */
export function findDueChannels(
  alert: AlertRecord,
  { channels, repeatIntervalMs }: Listeners,
  nowMs: number,
): readonly string[] {
  return channels.filter((channel) => {
    const heardAt = lastHeardAt(alert, channel);
    const intervalMs = repeatIntervalMs?.get(channel) ?? REPEAT_INTERVAL_MS;
    return heardAt === null || nowMs - heardAt >= intervalMs;
  });
}
