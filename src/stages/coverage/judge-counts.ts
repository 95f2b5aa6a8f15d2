import { hash } from "node:crypto";
import { type CoveredHour, isSameLacks, type Look, type SeenHour } from "#model/covered-hour.ts";
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
