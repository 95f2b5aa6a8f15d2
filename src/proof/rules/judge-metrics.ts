/** What the daily metrics prove, and how far back the platform shows events. */
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { KEPT_MS, type KnownHorizon, WHOLE_HORIZON } from "#model/horizon.ts";
import type { ProvenDay } from "#model/zones.ts";

/** The platform's and the stored count of one rule on one UTC day. */
interface DayOfRule {
  /** `yyyy-MM-dd`. */
  readonly day: string;
  readonly ruleId: string;
  /** The platform's own count; null if it was not fetched. */
  readonly platform: number | null;
  /** When the platform returned the count, epoch ms. */
  readonly fetchedAt: number | null;
  readonly stored: number;
}

/** A rule with a higher count by the platform on a day than is stored. */
export interface MetricAbove {
  readonly day: string;
  readonly ruleId: string;
  readonly platform: number;
  readonly stored: number;
  readonly fetchedAt: number;
}

/** Returns when a count of the metrics ends: with its day, or when the platform was asked; epoch ms. */
function endOf({ day, fetchedAt }: Pick<DayOfRule, "day" | "fetchedAt">): number {
  return Math.min(Date.parse(day) + DAY_MS, fetchedAt ?? 0);
}

/**
 * Returns whether every hour of the day that began before the count ends was read that far; `hours` are those of one
 * zone.
 */
export function isReadCompletely(row: DayOfRule, hours: readonly CoveredHour[]): boolean {
  const [dayStart, end] = [Date.parse(row.day), endOf(row)];
  const counted = hours.filter(({ startsAt }) => startsAt >= dayStart && startsAt < end);
  if (counted.length < Math.ceil((end - dayStart) / HOUR_MS)) return false;
  return counted.every(({ startsAt, state, searchedThrough }) => {
    if (state === "gap") return false;
    return state === "sealed" || (searchedThrough ?? 0) >= Math.min(startsAt + HOUR_MS, end);
  });
}

/** Returns when the platform's count of a day can be compared with the stored events; epoch ms. */
export function finalFrom({ day }: Pick<DayOfRule, "day">, settleMs: number): number {
  return Date.parse(day) + DAY_MS + settleMs;
}

/**
 * Compares the platform's daily metrics with the stored events for days that are read completely. Returns the counts
 * above the stored ones, and the days (epoch ms of their start) on which every rule agrees. Metrics may lag, so lower
 * counts are ignored. They may also be ahead of the other routes. A count that was fetched before its day had settled
 * is therefore `early`: it says nothing yet.
 */
export function judgeMetrics(
  rows: readonly DayOfRule[],
  { settleMs }: { settleMs: number },
): { above: MetricAbove[]; early: MetricAbove[]; confirmedDays: Set<number> } {
  const isFinal = (row: DayOfRule) => (row.fetchedAt ?? 0) >= finalFrom(row, settleMs);
  const { above = [], early = [] } = Object.groupBy(rows.filter(isAbove), (row) =>
    isFinal(row) ? "above" : "early",
  );
  const confirmed = [...Map.groupBy(rows, ({ day }) => Date.parse(day))].filter(([, rules]) => {
    const isAlike = (row: DayOfRule) => row.platform === row.stored && isFinal(row);
    return rules.every(isAlike) && rules.some(({ stored }) => stored > 0);
  });
  return { above, early, confirmedDays: new Set(confirmed.map(([day]) => day)) };
}

function isAbove(row: DayOfRule): row is MetricAbove {
  return row.platform !== null && row.fetchedAt !== null && row.platform > row.stored;
}

/** Time between the first and the second new proof of a day. It doubles with each, so that a count that grows for ever ends. */
const PROVE_AGAIN_MS = HOUR_MS;

/**
 * Returns whether the hours of a day have to be proven anew, because of counts above the stored ones that have risen
 * since the latest proof.
 */
export function mustProveAnew(
  now: number,
  counts: readonly MetricAbove[],
  proven: ProvenDay | undefined,
): boolean {
  if (proven === undefined) return true;
  const hasRisen = counts.some(({ ruleId, platform }) => platform > (proven.counts[ruleId] ?? 0));
  return hasRisen && now >= proven.at + PROVE_AGAIN_MS * 2 ** (proven.proofs - 1);
}

/** The platform's clock may be ahead by this much, so that it forgets an hour before it is expected to. */
export const CLOCK_SKEW_MS = 10 * 60_000;
/** A horizon that moves by more than this has changed. */
const CHANGE_MS = 30 * 60_000;
/** At least this many of the oldest stored events must be gone. Fewer may have been deleted one by one. */
const GONE_EVENTS = 5;
/** An undecided hour beyond the horizon becomes a gap after this time, because a gap is final. */
export const GIVE_UP_MS = 6 * 3_600_000;

/** The oldest events that a comparison of the counts shows. */
interface SeenHorizon {
  readonly at: number;
  /** Time of the oldest event that the platform counts. */
  readonly oldestShownAt: number;
  /** The stored events before it, all of which are gone: their number, and the time of the newest. */
  readonly gone: { readonly events: number; readonly newestAt: number | null };
}

/** Returns the horizon after a comparison: a longer one at once, a shorter one with the comparison as its `since`. */
export function learnHorizon(known: KnownHorizon, { at, oldestShownAt, gone }: SeenHorizon): KnownHorizon {
  const { keptMs } = known;
  if (keptMs !== null && at - oldestShownAt > keptMs + CLOCK_SKEW_MS) return WHOLE_HORIZON;
  if (gone.newestAt === null || gone.events < GONE_EVENTS) return known;
  const goneMs = at - gone.newestAt;
  if (goneMs > KEPT_MS - CLOCK_SKEW_MS) return known;
  const isChanged = keptMs === null || goneMs < keptMs - CHANGE_MS;
  return isChanged
    ? { keptMs: goneMs, since: at, beforeMs: keptMs ?? KEPT_MS }
    : { ...known, keptMs: goneMs };
}
