/** Compares the counts that are stored with the platform's. */

import { ServiceError } from "#lib/errors.ts";
import { cleanText, MAX_DIMENSION_CHARS } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import { EventGroup } from "#platform/contract/event-logs.ts";
import type { CountedSpan } from "./plan-comparison.ts";

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

/** The totals of the pages of one grouped search that were read so far. */
export interface CountsRead {
  /** Every rule seen, as the platform writes it. */
  readonly rules: Set<string>;
  /** Events by start of the bucket (epoch ms) and rule; rules as they are stored. */
  readonly cells: Map<number, Map<string, number>>;
  /** Time of the oldest counted event, epoch ms; null while none is known. */
  oldestAt: number | null;
}

/**
 * Adds one page of groups by ruleId, with a sparkline (platform API spec 2.4).
 * @throws {CountsUnreadableError} when a group cannot be read, came before, or its buckets do not add up to its count.
 */
export function addGroups(counts: CountsRead, groups: readonly unknown[], span: CountedSpan): void {
  const { rules, cells } = counts;
  for (const given of groups) {
    const read = EventGroup.safeParse(given);
    if (!read.success) throw new CountsUnreadableError("a group of the platform's counts cannot be read");
    const { key, count, sparkline, firstSeen } = read.data;
    if (firstSeen !== null && count > 0) counts.oldestAt = Math.min(counts.oldestAt ?? firstSeen, firstSeen);
    const rule = key["ruleId"] ?? "";
    if (rules.has(rule)) throw new CountsUnreadableError("a rule was counted twice: the pages have shifted");
    rules.add(rule);
    if (sparkline === null || sparkline.length !== span.buckets)
      throw new CountsUnreadableError(`a rule was not counted in ${span.buckets} buckets`);
    if (sparkline.reduce((sum, events) => sum + events, 0) !== count)
      throw new CountsUnreadableError("the buckets of a rule do not add up to its count");
    const ruleId = cleanText(rule, MAX_DIMENSION_CHARS);
    for (const [index, events] of sparkline.entries()) {
      if (events > 0) addCell(cells, { at: span.from + index * (span.bucketMs ?? HOUR_MS), ruleId, events });
    }
  }
}

/** Adds a cell. Two rules that differ only in characters that cannot be stored count as one. */
function addCell(
  cells: CountsRead["cells"],
  { at, ruleId, events }: { at: number; ruleId: string; events: number },
): void {
  const rules = cells.get(at) ?? new Map<string, number>();
  rules.set(ruleId, (rules.get(ruleId) ?? 0) + events);
  cells.set(at, rules);
}

/** An answer that shows none of at least so many known events is not recognised as the zone's. */
export const KNOWN_EVENTS = 5;

/**
 * Returns whether counts differ in most hours at once, in a way that neither late nor withdrawn events explain: an hour
 * has both more and fewer events of some rules than are stored, or fewer than half of its events.
 */
export function isWholeCountsChange(hours: readonly ComparedHour[]): boolean {
  const eventful = hours.filter(({ storedCount }) => storedCount > 0);
  const broken = eventful.filter(isBroken);
  return broken.length >= 2 && broken.length >= eventful.length / 2;
}

function isBroken({ differing, storedCount }: ComparedHour): boolean {
  let [above, below] = [0, 0];
  for (const cell of differing) {
    const difference = cell.upstreamCount - cell.storedCount;
    if (difference > 0) above += difference;
    else below -= difference;
  }
  return below > 0 && (above > 0 || below > storedCount / 2);
}

/** Thrown when the platform's counts contradict themselves. They prove nothing, and a repeated request may help. */
export class CountsUnreadableError extends ServiceError {
  override readonly name = "CountsUnreadableError";
  readonly code = "COUNTS_UNREADABLE";
  readonly disposition = "retry";
}
