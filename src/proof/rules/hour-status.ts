/** The status of hours as people see them: gaps, and when the platform forgets them. */
import { HOUR_MS } from "#lib/units.ts";
import { type CoverageHour, type CoveredHour, IMPORTED } from "#model/covered-hour.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { HourState, HourStatus } from "#model/kinds.ts";
import { SETTLE_MS } from "./hour-proof.ts";
import { explainOpen, foreseeVerdict, UNPREVENTABLE, type UnreadableEntries } from "./judge-hour.ts";

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
  if (hour.gapReason === IMPORTED) return "imported";
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

/**
 * Returns the hours until the platform begins to forget the oldest undecided hour of a zone; 0 once it has begun to, null if
 * every ended hour is sealed or a gap.
 */
export function hoursToLoss(oldest: { readonly leftMs: number } | null | undefined): number | null {
  return oldest ? Math.max(0, oldest.leftMs) / HOUR_MS : null;
}

/**
 * State of an hour. open: not decided. reopened: not decided, after its seal was withdrawn. sealed: proven complete.
 * gap: the platform forgot the hour before it was proven.
 */
export type CoverageState = HourState | "reopened";

const DECIDED = {
  sealed: "everything that the routes show is stored, and looks agree on what they no longer show",
  gap: "the platform has forgotten the hour",
};

/** Every possible change of state, with its cause. docs/how-it-works.md shows the same table. */
export const TRANSITIONS: Readonly<Record<CoverageState, Partial<Record<CoverageState, string>>>> = {
  open: DECIDED,
  reopened: DECIDED,
  sealed: {
    reopened:
      "a count differs, an event came late, metrics are above the stored count, or a log id was stored twice",
  },
  gap: {},
};

export function coverageState({
  state,
  reopenedAt,
}: Pick<CoveredHour, "state" | "reopenedAt">): CoverageState {
  if (state !== "open") return state;
  return reopenedAt === null ? "open" : "reopened";
}

/** Statuses, worst first. */
const WORST_FIRST: readonly HourStatus[] = [
  "gap",
  "unwatched",
  "imported",
  "open",
  "not yet",
  "searched",
  "sealed",
];

/**
 * Returns the worst status of the hours of [startsAt, endsAt). A part of an open hour that the search has passed
 * counts as searched. An hour before the first known one counts as unwatched.
 */
export function coverageOf(
  hours: ReadonlyMap<number, AssessedHour>,
  { startsAt, endsAt }: { startsAt: number; endsAt: number },
  now: number,
): HourStatus {
  let worst = WORST_FIRST.length - 1;
  for (let hour = startOfHour(startsAt); hour < endsAt; hour += HOUR_MS) {
    const end = Math.min(endsAt, hour + HOUR_MS);
    const status = statusOfPart(hours.get(hour), Math.max(startsAt, hour), end, now);
    worst = Math.min(worst, WORST_FIRST.indexOf(status));
  }
  return WORST_FIRST[worst] ?? "unwatched";
}

function statusOfPart(hour: AssessedHour | undefined, from: number, to: number, now: number): HourStatus {
  if (from > now) return "not yet";
  if (hour === undefined) return "unwatched";
  return hour.status === "open" && (hour.searchedThrough ?? 0) >= to ? "searched" : hour.status;
}

/** Consecutive gap hours. */
export interface Gap {
  /** Epoch ms, half-open. */
  readonly from: number;
  readonly to: number;
  readonly hours: number;
  readonly storedCount: number;
  /** The platform's last count of those hours that were compared with it; null if none was. */
  readonly upstreamCount: number | null;
  /** Each reason once, in the order of time. */
  readonly reasons: readonly string[];
}

/** Joins the gaps among `hours`, which are in order, to as few as possible. */
export function joinGaps(hours: readonly AssessedHour[]): Gap[] {
  const gaps: Gap[] = [];
  for (const { status, startsAt, storedCount, upstreamCount, gapReason } of hours) {
    if (status !== "gap") continue;
    const last = gaps.at(-1);
    const reasons = gapReason === null ? [] : [gapReason];
    const hour = { from: startsAt, to: startsAt + HOUR_MS, hours: 1, storedCount, upstreamCount, reasons };
    if (last?.to === startsAt) gaps[gaps.length - 1] = joined(last, hour);
    else gaps.push(hour);
  }
  return gaps;
}

function joined(one: Gap, next: Gap): Gap {
  const isCounted = one.upstreamCount !== null || next.upstreamCount !== null;
  return {
    from: one.from,
    to: next.to,
    hours: one.hours + next.hours,
    storedCount: one.storedCount + next.storedCount,
    upstreamCount: isCounted ? (one.upstreamCount ?? 0) + (next.upstreamCount ?? 0) : null,
    reasons: [...new Set([...one.reasons, ...next.reasons])],
  };
}
