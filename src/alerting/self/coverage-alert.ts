import { HOUR_MS } from "../../lib/units.ts";
import { digest } from "../../model/fingerprint.ts";
import { isGraver, type Severity } from "../../model/severity.ts";
import { gravestSeverity } from "../alert-history.ts";
import { type AlertRecord } from "../alert-record.ts";

/** Without a new gap for this long the outage that caused them is over. */
const QUIET_MS = HOUR_MS;
/** Gaps that nobody was told of are told late, for this long. */
const TOLD_LATE_MS = 24 * HOUR_MS;
/** A zone that is watched for the first time begins with hours that expire soon. */
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
export interface GapBatch {
  readonly decidedAt: number;
  readonly hours: number;
  /** Start of the first and end of the last. */
  readonly from: number;
  readonly to: number;
}

export interface CoverageNews {
  readonly reason: "first" | "worse" | "resolved" | "none";
  readonly severity: Severity;
  readonly headline: string;
  readonly openedAtMs: number;
}

/**
 * What to say of a zone's gaps: one alert for a whole outage, that closes when no gap has come for an hour. Null when
 * there is nothing to say and nothing open. `alert` is the newest of the zone's gap alerts.
 */
export function assessGaps(
  nowMs: number,
  zoneId: number,
  alert: AlertRecord | null,
  batches: readonly GapBatch[],
): CoverageNews | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  // Those of the quiet time before a resolve were not there when it was decided.
  const told = alert?.resolvedAtMs == null ? nowMs - TOLD_LATE_MS : alert.resolvedAtMs - QUIET_MS;
  const since = isOpen ? alert.firedAtMs - 1 : told;
  const fresh = batches.filter(({ decidedAt }) => decidedAt > since);
  const [first] = fresh;
  if (first === undefined && !isOpen) return null;
  const openedAtMs = first?.decidedAt ?? nowMs;
  const isQuiet = fresh.every(({ decidedAt }) => decidedAt <= nowMs - QUIET_MS);
  const lost = describeGaps(zoneId, fresh);
  const severity = "critical";
  if (!isOpen) return { reason: "first", severity, headline: lost, openedAtMs };
  if (!isQuiet) return { reason: "none", severity, headline: lost, openedAtMs };
  const headline = `${lost}. No other hour has been lost since then`;
  return { reason: "resolved", severity, headline, openedAtMs };
}

function describeGaps(zoneId: number, batches: readonly GapBatch[]): string {
  const hours = batches.reduce((sum, batch) => sum + batch.hours, 0);
  const from = Math.min(...batches.map((batch) => batch.from));
  const to = Math.max(...batches.map((batch) => batch.to));
  const span = batches.length === 0 ? "" : ` between ${toText(from)} and ${toText(to)} UTC`;
  return `Zone ${zoneId}: ${hours} ${hours === 1 ? "hour" : "hours"}${span} can never be proven complete`;
}

function toText(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace("T", " ");
}

export interface LossStanding {
  /** Until the platform begins to forget the oldest undecided hour; null when there is none. */
  readonly hoursLeft: number | null;
  /** When the first hour of the zone was decided; epoch ms, null before that. */
  readonly watchedSince: number | null;
  /** The zone's gap alert has paged for the same outage, or is about to. */
  readonly isGapTold: boolean;
}

/** What to say of hours that are about to be lost; null when nothing. `alert` is the newest of its kind. */
export function assessLoss(
  nowMs: number,
  zoneId: number,
  alert: AlertRecord | null,
  { hoursLeft, watchedSince, isGapTold }: LossStanding,
): CoverageNews | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const severity = hoursLeft === null ? null : rateLoss(hoursLeft);
  const openedAtMs = nowMs;
  if (hoursLeft === null || severity === null) {
    const headline = `Zone ${zoneId}: no hour is about to be lost any more`;
    return isOpen ? { reason: "resolved", severity: "warning", headline, openedAtMs } : null;
  }
  const rest = Math.floor(hoursLeft * 10) / 10;
  const headline = `Zone ${zoneId}: in ${rest} hours the platform begins to forget an hour that is not proven complete`;
  if (isOpen) {
    const reason = isGraver(severity, gravestSeverity(alert)) ? "worse" : "none";
    return { reason, severity, headline, openedAtMs };
  }
  const isFirstCopy = watchedSince === null || nowMs - watchedSince < FIRST_COPY_MS;
  return isFirstCopy || isGapTold ? null : { reason: "first", severity, headline, openedAtMs };
}

function rateLoss(hoursLeft: number): Severity | null {
  if (hoursLeft < ERROR_HOURS) return "error";
  return hoursLeft < WARNING_HOURS ? "warning" : null;
}
