/** Alerts about coverage: gaps, losses, suspicions and reopened hours. */
import { formatDuration, formatHours, many, showMinute, showTime } from "#lib/format.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { digest } from "#model/fingerprint.ts";
import { BELIEVED_MS, KEPT_MS, type KnownHorizon } from "#model/horizon.ts";
import type { Severity } from "#model/kinds.ts";
import { isGraver } from "#model/words.ts";
import { gravestSeverity } from "../alert-history.ts";
import type { AlertRecord } from "../alert-record.ts";

/** The outage that caused the gaps is over if no new gap has come for this long. */
const SETTLED_MS = HOUR_MS;
/** Gaps that no alert has reported are reported late, up to this age. */
const LATE_GAPS_MS = 24 * HOUR_MS;
/** The first hours of a newly watched zone expire soon, so they raise no alert. */
const FIRST_COPY_MS = HOUR_MS;
const WARNING_HOURS = 24;
const ERROR_HOURS = 12;

export function gapFingerprint(zoneId: number): string {
  return digest(["self", "coverage.gap", zoneId]);
}

export function lossFingerprint(zoneId: number): string {
  return digest(["self", "coverage.loss", zoneId]);
}

/** Hours of one zone that became gaps at the same moment; times in epoch ms. */
interface GapBatch {
  readonly decidedAt: number;
  readonly hours: number;
  /** Start of the first and end of the last. */
  readonly from: number;
  readonly to: number;
}

export interface SelfChange {
  readonly reason: "first" | "worse" | "resolved" | "none";
  readonly severity: Severity;
  readonly headline: string;
  readonly openedAtMs: number;
}

/**
 * Returns what to report about a zone's gaps; null if there is nothing to report and no open alert. One whole outage
 * has one alert, which is resolved when no gap has come for an hour. `alert` is the newest of the zone's gap alerts.
 */
export function assessGaps(
  nowMs: number,
  zoneId: number,
  alert: AlertRecord | null,
  batches: readonly GapBatch[],
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  // Gaps of the quiet time before a resolve were not stored when it was decided.
  const reportedUntil = alert?.resolvedAtMs == null ? nowMs - LATE_GAPS_MS : alert.resolvedAtMs - SETTLED_MS;
  const since = isOpen ? alert.firedAtMs - 1 : reportedUntil;
  const added = batches.filter(({ decidedAt }) => decidedAt > since);
  const [first] = added;
  if (first === undefined && !isOpen) return null;
  const openedAtMs = first?.decidedAt ?? nowMs;
  const isSettled = added.every(({ decidedAt }) => decidedAt <= nowMs - SETTLED_MS);
  const lost = describeGaps(zoneId, added);
  const severity = "critical";
  if (!isOpen) return { reason: "first", severity, headline: lost, openedAtMs };
  if (!isSettled) return { reason: "none", severity, headline: lost, openedAtMs };
  const headline = `${lost}. No other hour has been lost since then`;
  return { reason: "resolved", severity, headline, openedAtMs };
}

function describeGaps(zoneId: number, batches: readonly GapBatch[]): string {
  const hours = batches.reduce((sum, batch) => sum + batch.hours, 0);
  const from = Math.min(...batches.map((batch) => batch.from));
  const to = Math.max(...batches.map((batch) => batch.to));
  const span = batches.length === 0 ? "" : ` between ${showMinute(from)} and ${showMinute(to)} UTC`;
  return `Zone ${zoneId}: ${many(hours, "hour")}${span} can never be proven complete`;
}

interface LossState {
  /** Until the platform begins to delete the oldest undecided hour; null if there is none. */
  readonly hoursLeft: number | null;
  /** When the first hour of the zone was decided; epoch ms, null before that. */
  readonly watchedSince: number | null;
  /** Whether the zone's gap alert has notified of the same outage, or is about to. */
  readonly isGapReported: boolean;
}

/**
 * Returns what to report about hours that are about to be lost; null if there is nothing. `alert` is the newest of its
 * kind.
 */
export function assessLoss(
  nowMs: number,
  zoneId: number,
  alert: AlertRecord | null,
  { hoursLeft, watchedSince, isGapReported }: LossState,
): SelfChange | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const severity = hoursLeft === null ? null : rateLoss(hoursLeft);
  const openedAtMs = nowMs;
  if (hoursLeft === null || severity === null) {
    const headline = `Zone ${zoneId}: no hour is about to be lost any more`;
    return isOpen ? { reason: "resolved", severity: "warning", headline, openedAtMs } : null;
  }
  const headline = `Zone ${zoneId}: in ${formatHours(hoursLeft)} the platform begins to forget an hour that is not proven complete`;
  if (isOpen) {
    const reason = isGraver(severity, gravestSeverity(alert)) ? "worse" : "none";
    return { reason, severity, headline, openedAtMs };
  }
  const isFirstCopy = watchedSince === null || nowMs - watchedSince < FIRST_COPY_MS;
  return isFirstCopy || isGapReported ? null : { reason: "first", severity, headline, openedAtMs };
}

function rateLoss(hoursLeft: number): Severity | null {
  if (hoursLeft < ERROR_HOURS) return "error";
  return hoursLeft < WARNING_HOURS ? "warning" : null;
}

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
  const at = showMinute(first.startsAt);
  const headline = `Zone ${zoneId}: ${many} not sealed again yet. The oldest begins at ${at} UTC. ${first.reason}`;
  const openedAtMs = Math.min(...hours.map(({ reopenedAt }) => reopenedAt));
  if (isOpen) return { reason: "none", severity, headline, openedAtMs };
  return nowMs - openedAtMs >= REOPENED_MS ? { reason: "first", severity, headline, openedAtMs } : null;
}
