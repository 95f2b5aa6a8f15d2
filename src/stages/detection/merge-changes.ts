import { MINUTE_MS } from "#lib/units.ts";
import type { RuleChange } from "#model/rules.ts";

/** Changes of one spike. A zone has a few hundred rules; more are reported by the next spike. */
const MOST_CHANGES = 500;

/** A change that was found and not stored yet. */
export type NewChange = Omit<RuleChange, "foundAt" | "endedAt">;

interface ChangesToMerge {
  /** The changes of the open spike. */
  readonly open: readonly RuleChange[];
  /** All changes that were stored lately. */
  readonly known: readonly RuleChange[];
  readonly found: readonly NewChange[];
  readonly ended: ReadonlySet<string>;
  readonly atMs: number;
}

/**
 * Returns the changes of a spike with those that were found, and whether all are over; null if nothing changes. A change
 * is known if one of its rule was stored after it had begun. A later change of a rule ends the one before.
 */
export function mergeChanges({ open, known, found, ended, atMs }: ChangesToMerge) {
  const isKnown = ({ ruleId, since }: Pick<RuleChange, "ruleId" | "since">) =>
    known.some((one) => one.ruleId === ruleId && one.foundAt >= since * MINUTE_MS);
  const added = found
    .filter((one) => !isKnown(one))
    .sort((one, other) => one.since - other.since || (one.ruleId < other.ruleId ? -1 : 1))
    .slice(0, MOST_CHANGES - open.length);
  const over = new Set([...ended, ...added.map(({ ruleId }) => ruleId)]);
  const isEnding = ({ ruleId, endedAt }: RuleChange) => endedAt === null && over.has(ruleId);
  if (added.length === 0 && !open.some(isEnding)) return null;
  const changes = [
    ...open.map((one) => (isEnding(one) ? { ...one, endedAt: atMs } : one)),
    ...added.map((one) => ({ ...one, foundAt: atMs, endedAt: null })),
  ];
  return { changes, isOver: changes.every(({ endedAt }) => endedAt !== null) };
}
