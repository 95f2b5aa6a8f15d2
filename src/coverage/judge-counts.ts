import { hash } from "node:crypto";
import type { CoveredHour } from "../model/covered-hour.ts";
import { isSameCounts, type SeenHour } from "../model/look.ts";
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
 * Returns whether a comparison of a sealed hour agrees with its seal: no difference, or the one that was explained
 * then.
 */
export function isAsSealed({ looks }: CoveredHour, compared: ComparedHour): boolean {
  if (compared.differing.length === 0) return true;
  if (compared.differing.some(({ storedCount, upstreamCount }) => storedCount < upstreamCount)) return false;
  const accepted = looks.search?.lacks?.rules;
  return accepted !== undefined && isSameCounts(countDeficits(compared).rules, accepted);
}

/**
 * Converts a comparison to a look of the counts. The counts know an event when the search does, so for an hour with
 * unresolved events it is unknown whether the counts should include them.
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
