/** What counts say about an hour and about its seal. */

import { hash } from "node:crypto";
import { z } from "zod";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import {
  type CoveredHour,
  type HourContents,
  isSameLacks,
  type Look,
  type SeenHour,
} from "#model/covered-hour.ts";
import { KEPT_MS, type KnownHorizon, WHOLE_HORIZON } from "#model/horizon.ts";
import type { ProvenDay } from "#model/zones.ts";
import type { CellCounts, ComparedHour } from "./compare-counts.ts";

const MAX_RULES = 200;

/** Returns how many stored events the platform's counts lack, and of which rules. */
export function countDeficits({ differing }: ComparedHour): { count: number; rules: Record<string, number> } {
  const cells = differing.filter(({ storedCount, upstreamCount }) => storedCount > upstreamCount);
  const deficits = cells.map((cell) => [cell.ruleId, cell.storedCount - cell.upstreamCount] as const);
  const count = deficits.reduce((sum, [, events]) => sum + events, 0);
  // Above this number of rules the differences are not named, so they stay unexplained.
  return { count, rules: deficits.length > MAX_RULES ? {} : Object.fromEntries(deficits) };
}

/**
 * Returns whether a comparison of a sealed hour agrees with its seal: the platform counts what it counted then. Counts
 * that equal the stored events are not enough: a late event may replace one that the platform has dropped.
 */
export function isAsSealed(
  { looks: { counts } }: CoveredHour,
  compared: ComparedHour,
  upstream: CellCounts,
): boolean {
  if (compared.differing.some(({ storedCount, upstreamCount }) => storedCount < upstreamCount)) return false;
  return (
    counts?.ids === digestCells(upstream, compared) && isSameLacks(countDeficits(compared), counts.lacks)
  );
}

/** Returns whether the platform counts more events of a rule than at the seal of the hour. */
export function isAboveSeal({ looks: { counts } }: CoveredHour, { differing }: ComparedHour): boolean {
  const lacked = new Map(Object.entries(counts?.lacks?.rules ?? {}));
  for (const { ruleId, storedCount, upstreamCount } of differing) {
    if (upstreamCount > storedCount - (lacked.get(ruleId) ?? 0)) return true;
    lacked.delete(ruleId);
  }
  // The platform now counts as many events of these rules as are stored.
  return lacked.size > 0;
}

/** Returns the reason, for people, why a comparison withdraws the seal of an hour. */
export function explainReopening(
  { looks: { counts } }: CoveredHour,
  { upstreamCount, storedCount }: ComparedHour,
): string {
  const found = `The platform counts ${upstreamCount} events, ${storedCount} are stored.`;
  if (upstreamCount !== storedCount || counts === undefined) return found;
  return `${found} It counted ${counts.count} at the seal.`;
}

/**
 * Returns the time from which an undecided hour has to be proven anew because its counts changed between two
 * comparisons, or null: one event may have taken the place of another since the search and the list were read. If the
 * hour gained an event meanwhile, that may be the change, so looks since the earlier comparison are enough.
 */
export function findChange(
  { looks: { counts: earlier }, lastNewAt }: CoveredHour,
  later: Look | undefined,
): number | null {
  if (earlier === undefined || later === undefined || earlier.ids === later.ids) return null;
  return lastNewAt !== null && lastNewAt >= earlier.at ? earlier.at : later.at;
}

/** Converts a comparison to a look of the counts. */
export function toCountsLook(compared: ComparedHour, upstream: CellCounts, at: number): SeenHour {
  const { count, rules } = countDeficits(compared);
  const lacks = { count, ids: [], rules };
  return {
    at,
    pages: 1,
    count: compared.upstreamCount,
    ids: digestCells(upstream, compared),
    ...(count === 0 ? {} : { lacks }),
  };
}

function digestCells(upstream: CellCounts, { startsAt }: ComparedHour): string {
  const cells = [...(upstream.get(startsAt) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  return hash("sha256", JSON.stringify(cells), "hex").slice(0, 16);
}

/** What is compared of the evidence of a seal. */
const Evidence = z.object({
  stored: z.object({ count: z.number(), ids: z.string() }).optional(),
  search: z.object({ lacks: z.object({ count: z.number() }).optional() }).nullish(),
  counts: z
    .object({ count: z.number().optional(), lacks: z.object({ count: z.number() }).optional() })
    .nullish(),
});

/** A contradiction between a seal and the stored events. */
interface SealFault {
  /** The number by the seal, and the number that contradicts it. */
  readonly expected: number;
  readonly found: number;
  /** The contradiction in words. */
  readonly text: string;
}

/**
 * Returns why the seal of an hour does not hold; empty for a good seal. The hour must hold the same events as at the
 * seal, each with every dimension, and the platform's count at the seal must not be lower. Log ids under two times
 * are not looked for.
 */
export function findSealFaults(
  { evidence, storedCount }: { readonly evidence: unknown; readonly storedCount: number },
  holds: HourContents,
): SealFault[] {
  const read = Evidence.safeParse(evidence);
  const { stored, search, counts } = read.success ? read.data : {};
  const faults: SealFault[] = [];
  const sealedCount = stored?.count ?? storedCount;
  if (holds.count !== sealedCount)
    faults.push({
      expected: sealedCount,
      found: holds.count,
      text: "another number of events than at the seal",
    });
  else if (stored !== undefined && stored.ids !== holds.ids)
    faults.push({
      expected: stored.count,
      found: holds.count,
      text: "the same number of events as at the seal, but different events",
    });
  const platform = counts?.count ?? null;
  if (
    platform !== null &&
    platform + (counts?.lacks?.count ?? 0) < sealedCount &&
    search?.lacks === undefined
  )
    faults.push({
      expected: platform,
      found: sealedCount,
      text: "sealed although the platform counted fewer events",
    });
  const named = search?.lacks?.count ?? 0;
  if (holds.unresolved > named)
    faults.push({
      expected: holds.count - named,
      found: holds.count - holds.unresolved,
      text: "events without every dimension",
    });
  return faults;
}

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
