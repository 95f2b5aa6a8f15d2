import { many, showTime } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { digest } from "#model/fingerprint.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { SelfChange } from "./coverage-alert.ts";

/** A receiver that restarts needs no alert. */
const GRACE_MS = 15 * MINUTE_MS;

export function forwardFingerprint(destination: string): string {
  return digest(["self", "forward", destination]);
}

/** Trouble with a destination; times in epoch ms. */
export interface ForwardTrouble {
  /** Null while it works. */
  readonly failingSince: number | null;
  /** True if it will fail until a person changes something. */
  readonly isRefused: boolean;
  readonly lastError: string | null;
  /** Hours that were sent twice and still differ, and when the first was found; null without one. */
  readonly differing: { readonly hours: number; readonly since: number } | null;
  /** Events that it has refused, and when it refused the first; null without one. */
  readonly refused: { readonly events: number; readonly since: number; readonly reason: string } | null;
}

/** Returns the report about a destination; null if there is nothing. `alert` is the newest about it. `trouble` is null if it is not configured any more. */
export function assessForwarding(
  nowMs: number,
  alert: AlertRecord | null,
  { destination, trouble }: { readonly destination: string; readonly trouble: ForwardTrouble | null },
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const name = `Destination ${destination}`;
  const found = trouble === null ? null : describe(destination, trouble, nowMs);
  if (found !== null) {
    // Postgres counts microseconds.
    const openedAtMs = Math.floor(found.openedAtMs);
    return { reason: isOpen ? "none" : "first", severity: "error", headline: found.headline, openedAtMs };
  }
  if (!isOpen) return null;
  const headline =
    trouble === null
      ? `${name} is not configured any more`
      : `${name} works again: it accepts events, and no hour differs`;
  return { reason: "resolved", severity: "error", headline, openedAtMs: nowMs };
}

/** Returns whether a failing destination needs a person: for what it answers, or for how long it has failed. */
export function needsPerson(
  { failingSince, isRefused }: Pick<ForwardTrouble, "failingSince" | "isRefused">,
  nowMs: number,
): boolean {
  return failingSince !== null && (isRefused || nowMs - failingSince >= GRACE_MS);
}

/** Names the gravest trouble only: its next step is the one to take. */
function describe(
  destination: string,
  { failingSince, isRefused, lastError, differing, refused }: ForwardTrouble,
  nowMs: number,
): Pick<SelfChange, "headline" | "openedAtMs"> | null {
  const name = `Destination ${destination}`;
  if (failingSince !== null && needsPerson({ failingSince, isRefused }, nowMs)) {
    const step = isRefused
      ? "Correct it in the configuration file or at the receiver"
      : "See whether the receiver is up";
    const headline = `${name} has accepted no events since ${showTime(failingSince)} UTC: ${lastError}. ${step}. The events wait in Longwatch, and none is lost`;
    return { headline, openedAtMs: failingSince };
  }
  if (differing !== null) {
    const headline = `${name} does not have all events of ${many(differing.hours, "hour")}, although they were sent twice. See longwatch forward hours ${destination} --arrival differs`;
    return { headline, openedAtMs: differing.since };
  }
  if (refused === null) return null;
  const headline = `${name} has refused ${many(refused.events, "event")}, for example because: ${refused.reason}. See longwatch forward refused ${destination}`;
  return { headline, openedAtMs: refused.since };
}
