import { formatDuration, showTime } from "#lib/format.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { digest } from "#model/fingerprint.ts";
import { BELIEVED_MS, KEPT_MS, type KnownHorizon } from "#model/horizon.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { SelfChange } from "./coverage-alert.ts";

/** A route may be suspect for a moment. */
const SUSPECT_MS = 15 * 60_000;
/** A reopened hour is usually repaired and sealed again within one cycle. */
const REOPENED_MS = HOUR_MS;

export function suspicionFingerprint(zoneId: number): string {
  return digest(["self", "coverage.suspect", zoneId]);
}

export function reopenedFingerprint(zoneId: number): string {
  return digest(["self", "coverage.reopened", zoneId]);
}

/** A route of a zone whose answers are held back; since when, in epoch ms. */
export interface SuspectRoute {
  readonly since: number;
  readonly reason: string;
}

/**
 * Returns what to report about a platform whose answers are held back; null if there is nothing. `alert` is the newest of
 * its kind.
 */
export function assessSuspicion(
  nowMs: number,
  zoneId: number,
  alert: AlertRecord | null,
  routes: readonly SuspectRoute[],
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const severity = "error";
  const [first] = routes;
  if (first === undefined) {
    const headline = `Zone ${zoneId}: the platform shows the known events again`;
    return isOpen ? { reason: "resolved", severity, headline, openedAtMs: nowMs } : null;
  }
  const headline = `Zone ${zoneId}: the platform's answers cannot be right and are held back. ${first.reason}`;
  const openedAtMs = Math.min(...routes.map(({ since }) => since));
  if (isOpen) return { reason: "none", severity, headline, openedAtMs };
  return nowMs - openedAtMs >= SUSPECT_MS ? { reason: "first", severity, headline, openedAtMs } : null;
}

export function horizonFingerprint(zoneId: number): string {
  return digest(["self", "coverage.horizon", zoneId]);
}

/**
 * Returns what to report about a platform that keeps events for less than before; null if there is nothing. `alert` is
 * the newest of its kind.
 */
export function assessHorizon(
  nowMs: number,
  zoneId: number,
  alert: AlertRecord | null,
  { keptMs, since, beforeMs }: KnownHorizon,
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const severity = "error";
  if (keptMs === null || since === null) {
    const headline = `Zone ${zoneId}: the platform keeps events for ${formatDuration(KEPT_MS)} again`;
    return isOpen ? { reason: "resolved", severity, headline, openedAtMs: nowMs } : null;
  }
  const before = `${formatDuration(beforeMs ?? KEPT_MS)} until ${showTime(startOfMinute(since))} UTC`;
  const headline = `Zone ${zoneId}: the platform now keeps events for ${formatDuration(keptMs)} (${before})`;
  if (isOpen) return { reason: "none", severity, headline, openedAtMs: since };
  return nowMs - since >= BELIEVED_MS ? { reason: "first", severity, headline, openedAtMs: since } : null;
}

function startOfMinute(at: number): number {
  return at - (at % MINUTE_MS);
}

/** An hour whose seal was withdrawn and that is not sealed again; epoch ms. */
export interface ReopenedHour {
  readonly startsAt: number;
  readonly reopenedAt: number;
  readonly reason: string;
}

/**
 * Returns what to report about hours that stay reopened; null if there is nothing. `alert` is the newest of its kind.
 */
export function assessReopened(
  nowMs: number,
  zoneId: number,
  alert: AlertRecord | null,
  hours: readonly ReopenedHour[],
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const severity = "warning";
  const [first] = hours;
  if (first === undefined) {
    const headline = `Zone ${zoneId}: every reopened hour is now sealed again or a gap`;
    return isOpen ? { reason: "resolved", severity, headline, openedAtMs: nowMs } : null;
  }
  const many =
    hours.length === 1 ? "1 hour was reopened and is" : `${hours.length} hours were reopened and are`;
  const at = new Date(first.startsAt).toISOString().slice(0, 16).replace("T", " ");
  const headline = `Zone ${zoneId}: ${many} not sealed again yet. The oldest begins at ${at} UTC. ${first.reason}`;
  const openedAtMs = Math.min(...hours.map(({ reopenedAt }) => reopenedAt));
  if (isOpen) return { reason: "none", severity, headline, openedAtMs };
  return nowMs - openedAtMs >= REOPENED_MS ? { reason: "first", severity, headline, openedAtMs } : null;
}
