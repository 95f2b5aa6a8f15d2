/** Events by hour (epoch ms of its start) and rule; a rule that is not known is ''. */
export type CellCounts = ReadonlyMap<number, ReadonlyMap<string, number>>;

interface DifferingCell {
  readonly ruleId: string;
  readonly upstreamCount: number;
  readonly storedCount: number;
}

export interface ComparedHour {
  readonly startsAt: number;
  readonly upstreamCount: number;
  readonly storedCount: number;
  /** The rules whose counts differ. */
  readonly differing: readonly DifferingCell[];
}

/** Compares the stored and the platform's counts of these hours, cell by cell. A missing cell counts as 0. */
export function compareCounts(
  hours: readonly number[],
  upstream: CellCounts,
  stored: CellCounts,
): ComparedHour[] {
  return hours.map((startsAt) => {
    const there = upstream.get(startsAt) ?? new Map<string, number>();
    const here = stored.get(startsAt) ?? new Map<string, number>();
    const differing: DifferingCell[] = [];
    for (const ruleId of new Set([...there.keys(), ...here.keys()])) {
      const [upstreamCount, storedCount] = [there.get(ruleId) ?? 0, here.get(ruleId) ?? 0];
      if (upstreamCount !== storedCount) differing.push({ ruleId, upstreamCount, storedCount });
    }
    return { startsAt, upstreamCount: sum(there), storedCount: sum(here), differing };
  });
}

/**
 * Counts whose buckets include their end count an event on a full hour in both hours. Returns the hours without that:
 * `ends` has the stored events at exactly the end of each hour, by rule. Every rule that is above has to be explained.
 */
export function ignoreEnds(hours: readonly ComparedHour[], ends: CellCounts): ComparedHour[] {
  return hours.map((hour) => {
    const atEnd = ends.get(hour.startsAt) ?? new Map<string, number>();
    const above = hour.differing.filter(isMissing);
    const isExplained = ({ ruleId, upstreamCount, storedCount }: DifferingCell) =>
      upstreamCount - storedCount <= (atEnd.get(ruleId) ?? 0);
    if (above.length === 0 || !above.every(isExplained)) return hour;
    const excess = above.reduce((events, cell) => events + cell.upstreamCount - cell.storedCount, 0);
    const differing = hour.differing.filter((cell) => !isMissing(cell));
    return { ...hour, upstreamCount: hour.upstreamCount - excess, differing };
  });
}

/** Returns whether fewer events of a cell are stored than the platform counts. */
export function isMissing({ upstreamCount, storedCount }: DifferingCell): boolean {
  return storedCount < upstreamCount;
}

function sum(counts: ReadonlyMap<string, number>): number {
  let total = 0;
  for (const count of counts.values()) total += count;
  return total;
}
