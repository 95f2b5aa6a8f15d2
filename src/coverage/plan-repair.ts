/** An hour with more differing rules than this is cheaper to search whole. */
const MAX_CELLS = 5;
/** A rule that was searched so often in vain is not what its events say: the whole hour finds them. */
const MAX_VAIN_REPAIRS = 2;

export interface MissingCell {
  readonly startsAt: number;
  readonly ruleId: string;
  /** Searches made for it so far. */
  readonly repairs: number;
}

export interface Repair {
  readonly startsAt: number;
  /** Each to be searched by itself; null for the whole hour. */
  readonly ruleIds: readonly string[] | null;
}

/** What to search for the cells with fewer events here than there, the hour that expires first in front. */
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
