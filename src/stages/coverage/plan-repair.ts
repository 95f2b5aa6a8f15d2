/** An hour with more differing rules than this is cheaper to search as a whole. */
const MAX_CELLS = 5;
/**
 * After this many searches without success for a rule, the whole hour is searched: the events may belong to another
 * rule.
 */
const MAX_VAIN_REPAIRS = 2;

export interface MissingCell {
  readonly startsAt: number;
  readonly ruleId: string;
  /** Number of searches for the cell so far. */
  readonly repairs: number;
}

export interface Repair {
  readonly startsAt: number;
  /** Rules to search one by one; null for the whole hour. */
  readonly ruleIds: readonly string[] | null;
}

/** Returns the searches for the cells with missing events. The hour that expires first comes first. */
export function planRepairs(cells: readonly MissingCell[]): Repair[] {
  const byHour = Map.groupBy(cells, ({ startsAt }) => startsAt);
  return [...byHour]
    .sort(([a], [b]) => a - b)
    .map(([startsAt, missing]) => {
      const isWhole =
        missing.length > MAX_CELLS ||
        missing.some(({ ruleId, repairs }) => ruleId === "" || repairs >= MAX_VAIN_REPAIRS);
      return { startsAt, ruleIds: isWhole ? null : missing.map(({ ruleId }) => ruleId) };
    });
}
