import { HOUR_MS } from "../../lib/units.ts";
import { digest } from "../../model/fingerprint.ts";
import type { AlertRecord } from "../alert-record.ts";
import type { SelfChange } from "./coverage-alert.ts";

/** A route may be suspect for a moment; comparisons that agree for ten minutes clear it. */
const SUSPECT_MS = 15 * 60_000;
/** A reopened hour is usually repaired and sealed again within one cycle. */
const REOPENED_MS = HOUR_MS;

export function suspicionFingerprint(zoneId: number): string {
  return digest(["self", "coverage.suspect", zoneId]);
}

export function reopenedFingerprint(zoneId: number): string {
  return digest(["self", "coverage.reopened", zoneId]);
}

/** A route of a zone that shows less than before; since when, in epoch ms. */
export interface SuspectRoute {
  readonly since: number;
  readonly reason: string;
}

/**
 * Returns what to report about a platform that answers incompletely; null if there is nothing. `alert` is the newest of
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
    const headline = `Zone ${zoneId}: the platform's answers agree again`;
    return isOpen ? { reason: "resolved", severity, headline, openedAtMs: nowMs } : null;
  }
  const headline = `Zone ${zoneId}: the platform answers incompletely, so no hour is sealed. ${first.reason}`;
  const openedAtMs = Math.min(...routes.map(({ since }) => since));
  if (isOpen) return { reason: "none", severity, headline, openedAtMs };
  return nowMs - openedAtMs >= SUSPECT_MS ? { reason: "first", severity, headline, openedAtMs } : null;
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
