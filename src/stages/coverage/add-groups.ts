import { EventGroup } from "#adapters/edge/contract/event-logs.ts";
import { cleanText, MAX_DIMENSION_CHARS } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import { CountsUnreadableError } from "./counts-unreadable-error.ts";
import type { CountedSpan } from "./plan-comparison.ts";

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
