import { hash } from "node:crypto";
import type { CoveredHour } from "../model/covered-hour.ts";
import { isSameCounts, type SeenHour } from "../model/look.ts";
import type { CellCounts, ComparedHour } from "./compare-counts.ts";

const MAX_RULES = 200;

/** How many events the platform's counts lack of what is stored, and of which rules. */
export function countDeficits({ differing }: ComparedHour): { count: number; rules: Record<string, number> } {
  const cells = differing.filter(({ storedCount, upstreamCount }) => storedCount > upstreamCount);
  const deficits = cells.map((cell) => [cell.ruleId, cell.storedCount - cell.upstreamCount] as const);
  const count = deficits.reduce((sum, [, events]) => sum + events, 0);
  // Beyond that many rules the differences are not named, so they stay unexplained.
  return { count, rules: deficits.length > MAX_RULES ? {} : Object.fromEntries(deficits) };
}

/** Whether a comparison of a sealed hour shows what its seal says: no difference, or the one that was explained then. */
export function isAsSealed({ looks }: CoveredHour, compared: ComparedHour): boolean {
  if (compared.differing.length === 0) return true;
  if (compared.differing.some(({ storedCount, upstreamCount }) => storedCount < upstreamCount)) return false;
  const accepted = looks.search?.lacks?.rules;
  return accepted !== undefined && isSameCounts(countDeficits(compared).rules, accepted);
}

/**
 * A comparison as a look of the counts. Counts know an event when the search does, so of an hour with unresolved events
 * nobody can say whether they should count it.
 */
export function toCountsLook(
  compared: ComparedHour,
  upstream: CellCounts,
  { at, isResolved }: { at: number; isResolved: boolean },
): SeenHour {
  const cells = [...(upstream.get(compared.startsAt) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  const { count, rules } = countDeficits(compared);
  const lacks = { count, known: isResolved ? count : 0, ids: [], rules };
  return {
    at,
    pages: 1,
    count: compared.upstreamCount,
    ids: hash("sha256", JSON.stringify(cells), "hex").slice(0, 16),
    ...(count === 0 ? {} : { lacks }),
  };
}
