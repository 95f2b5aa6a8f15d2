/** Alerts about polling, credentials and destinations. */

import { many, showMinute, showTime } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { digest } from "#model/fingerprint.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { SelfChange } from "./coverage-alert.ts";

/**
 * While a key is being changed, the platform refuses it for a moment, on one replica before the other. If one of the
 * two routes is refused for another reason, the platform still answers the other route every minute.
 */
const REFUSED_GRACE_MS = 2 * 60_000;
const UNPOLLED_MS = 20 * 60_000;

export function credentialsFingerprint(): string {
  return digest(["self", "credentials"]);
}

export function unpolledFingerprint(zoneId: number): string {
  return digest(["self", "quiet", zoneId]);
}

/** The times that the database records about a zone, in epoch ms; null if it has not happened. */
interface PolledZone {
  readonly zoneId: number;
  readonly watchedSince: number | null;
  readonly answeredAt: number | null;
  readonly refusedSince: number | null;
  readonly refusedWith: string | null;
  readonly polledThrough: number | null;
}

/** Returns how long a zone may go without a completed poll. The settings may ask for fewer than one in 20 minutes. */
export function unpolledLimit(pollEveryMs: number): number {
  return Math.max(UNPOLLED_MS, 3 * pollEveryMs);
}

/** Whether the platform has refused the zone for a while and not answered since. */
function isRefused({ answeredAt, refusedSince }: PolledZone, nowMs: number): boolean {
  if (refusedSince === null || nowMs - refusedSince < REFUSED_GRACE_MS) return false;
  return answeredAt === null || answeredAt < refusedSince;
}

/** Whether this zone's events arrive. */
export function isPolled(zone: PolledZone, nowMs: number, limitMs: number): boolean {
  return !isRefused(zone, nowMs) && zone.polledThrough !== null && nowMs - zone.polledThrough <= limitMs;
}

/**
 * Returns what to report about an access key that the platform refuses; null if there is nothing to report and no open
 * alert. There is one alert whatever the number of zones, because there is one key. `alert` is the newest of its kind.
 */
export function assessCredentials(
  nowMs: number,
  alert: AlertRecord | null,
  zones: readonly PolledZone[],
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const refused = zones.filter((zone) => isRefused(zone, nowMs));
  const openedAtMs = Math.min(nowMs, ...refused.map(({ refusedSince }) => refusedSince ?? nowMs));
  const severity = "critical";
  if (refused.length === 0) {
    const headline = "The platform accepts the access key again";
    return isOpen ? { reason: "resolved", severity, headline, openedAtMs } : null;
  }
  const codes = [...new Set(refused.map(({ refusedWith }) => refusedWith ?? "refused"))].join(", ");
  const names = refused.map(({ zoneId }) => zoneId).join(", ");
  const headline = `The platform refuses the access key (${codes}). No events of ${refused.length === 1 ? "zone" : "zones"} ${names} are copied`;
  return { reason: isOpen ? "none" : "first", severity, headline, openedAtMs };
}

/**
 * Returns what to report about a zone that was not polled for `limitMs`. If the platform refuses the key, only the
 * alert about the key is raised.
 */
export function assessUnpolled(
  nowMs: number,
  alert: AlertRecord | null,
  zone: PolledZone,
  limitMs: number,
): SelfChange | null {
  const { zoneId, polledThrough, watchedSince } = zone;
  const isOpen = alert !== null && alert.state !== "resolved";
  const severity = "critical";
  const since = Math.max(polledThrough ?? 0, watchedSince ?? nowMs);
  const openedAtMs = since + limitMs;
  if (isOpen && isPolled(zone, nowMs, limitMs)) {
    const headline = `Zone ${zoneId}: events are polled again`;
    return { reason: "resolved", severity, headline, openedAtMs };
  }
  const headline = `Zone ${zoneId}: no poll has succeeded ${polledThrough === null ? "yet" : `since ${showMinute(polledThrough)} UTC`}. Longwatch cannot detect attacks there`;
  if (isOpen) return { reason: "none", severity, headline, openedAtMs };
  const isQuiet = nowMs > openedAtMs && !isRefused(zone, nowMs);
  return isQuiet ? { reason: "first", severity, headline, openedAtMs } : null;
}

/** A receiver that restarts needs no alert. */
const GRACE_MS = 15 * MINUTE_MS;

export function forwardFingerprint(destination: string): string {
  return digest(["self", "forward", destination]);
}

/** Trouble with a destination; times in epoch ms. */
interface ForwardTrouble {
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
