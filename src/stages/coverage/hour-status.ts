import { HOUR_MS } from "#lib/units.ts";
import type { CoverageHour } from "#model/covered-hour.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { HourStatus } from "#model/kinds.ts";
import { explainOpen, foreseeVerdict, UNPREVENTABLE, type UnreadableEntries } from "./judge-hour.ts";
import { SETTLE_MS } from "./settle.ts";

export interface AssessedHour extends CoverageHour {
  readonly status: HourStatus;
  /** Reason why the hour is not sealed, for people; null if it is decided or has not settled yet. */
  readonly notSealedBecause: string | null;
}

/** Follows the reason of a gap that seal-windows has not stored yet. */
const NOT_RECORDED = "Longwatch has not recorded this gap yet.";

interface AssessedSpan {
  readonly from: number;
  readonly to: number;
  /** Start of the zone's first known hour. */
  readonly firstHour: number;
  /** Reason why a route of the zone is suspect; null while none is. */
  readonly suspicion: string | null;
  /** How long the platform keeps events, as far as a gap is concerned. */
  readonly keptMs: number;
  readonly unreadable?: readonly UnreadableEntries[];
}

/**
 * Returns the status of every hour of [from, to) at or after `firstHour`, oldest first; `rows` may lack hours. An
 * expired hour that is not decided yet gets the status and the reason that seal-windows is about to store.
 */
export function assessHours(
  now: number,
  rows: readonly CoverageHour[],
  { from, to, firstHour, ...zone }: AssessedSpan,
): AssessedHour[] {
  const { keptMs } = zone;
  const policy = { ...zone, settleMs: SETTLE_MS };
  const known = new Map(rows.map((row) => [row.startsAt, row]));
  const hours: AssessedHour[] = [];
  for (let startsAt = startOfHour(Math.max(from, firstHour)); startsAt < to; startsAt += HOUR_MS) {
    const row = known.get(startsAt) ?? { ...UNKNOWN, startsAt };
    const expiredAs = isExpired(now, row, keptMs) ? foresee(now, { ...row, firstHour }, policy) : null;
    const { status, gapReason } = expiredAs ?? { status: statusOf(now, row), gapReason: row.gapReason };
    // No look can prove an hour that the platform has begun to forget.
    const isLeaving = startsAt < horizonAt(now, keptMs);
    const notSealedBecause = isLeaving ? null : explainOpen(now, row, policy);
    hours.push({ ...row, status, gapReason, notSealedBecause });
  }
  return hours;
}

function isExpired(now: number, { state, startsAt }: CoverageHour, keptMs: number): boolean {
  return state === "open" && startsAt + HOUR_MS <= horizonAt(now, keptMs);
}

function foresee(
  now: number,
  hour: CoverageHour & { readonly firstHour: number },
  zone: Parameters<typeof foreseeVerdict>[2],
): Pick<AssessedHour, "status" | "gapReason"> {
  const verdict = foreseeVerdict(now, hour, zone);
  if (verdict.state !== "gap") return { status: "searched", gapReason: null };
  const { reason } = verdict;
  if (UNPREVENTABLE.includes(reason)) return { status: "unwatched", gapReason: reason };
  return { status: "gap", gapReason: `${reason} ${NOT_RECORDED}` };
}

function statusOf(now: number, hour: CoverageHour): HourStatus {
  if (UNPREVENTABLE.includes(hour.gapReason ?? "")) return "unwatched";
  if (hour.state !== "open") return hour.state;
  if (hour.startsAt > now) return "not yet";
  return (hour.searchedThrough ?? 0) >= hour.startsAt + HOUR_MS ? "searched" : "open";
}

const UNKNOWN: Omit<CoverageHour, "startsAt"> = {
  state: "open",
  searchedThrough: null,
  storedCount: 0,
  upstreamCount: null,
  missingCells: 0,
  surplusCells: 0,
  lastNewAt: null,
  closingSearchAt: null,
  reconciledAt: null,
  sealedAt: null,
  gapReason: null,
  reopenedAt: null,
  reopenReason: null,
  proofFrom: null,
  unresolvedSince: null,
  judgedAt: null,
  judgedWith: null,
  looks: {},
  evidence: null,
};

export interface NextToExpire {
  readonly startsAt: number;
  /** Hours until the platform forgets the hour's first event. */
  readonly hoursToLoss: number;
}

/** Returns the oldest ended hour that the platform still has whole and that is not proven complete, or null. */
export function findNextToExpire(
  now: number,
  hours: readonly AssessedHour[],
  keptMs: number,
): NextToExpire | null {
  const horizon = horizonAt(now, keptMs);
  const next = hours.find(
    ({ startsAt, status }) =>
      (status === "searched" || status === "open") && startsAt >= horizon && startsAt + HOUR_MS <= now,
  );
  return next === undefined
    ? null
    : { startsAt: next.startsAt, hoursToLoss: (next.startsAt - horizon) / HOUR_MS };
}
