/** What counts say about an hour and about its seal. */
import { hash } from "node:crypto";
import { z } from "zod";
import {
  type CoveredHour,
  type HourContents,
  isSameLacks,
  type Look,
  type SeenHour,
} from "#model/covered-hour.ts";
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
