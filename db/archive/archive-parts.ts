import { type SQL, sql } from "drizzle-orm";
import { toCondition, toMoment } from "../search/search-condition.ts";
import type { EventQuery } from "../search/search-query.ts";

/** The last event of a part of an export. */
export interface PartEnd {
  /** Epoch ms. */
  readonly at: number;
  readonly logId: string;
}

/** `end` is null when no event follows the part. */
export interface ExportPart<Part> {
  readonly part: Part;
  readonly end: PartEnd | null;
}

/**
 * Returns the parts of an export. Each part is read by a statement of its own that continues where the last one
 * ended, so a slow reader holds neither a connection nor a snapshot. The next part is read while one is written. The
 * export may include events that arrive meanwhile.
 */
export async function* readParts<Part>(
  read: (after: PartEnd | null) => Promise<ExportPart<Part>>,
): AsyncGenerator<Part, void, undefined> {
  const begin = (after: PartEnd | null) => {
    const reading = read(after);
    // The read may fail while the previous part is still being written, before anything awaits it.
    reading.catch(() => undefined);
    return reading;
  };
  let reading: Promise<ExportPart<Part>> | null = begin(null);
  while (reading !== null) {
    const { part, end }: ExportPart<Part> = await reading;
    reading = end === null ? null : begin(end);
    yield part;
  }
}

/**
 * Returns the part of the statement from FROM on that selects the next `limit` events: newest first, events of one
 * millisecond by id, greatest first.
 */
export function fromWaf(
  zoneId: number,
  query: EventQuery,
  { after, limit }: { after: PartEnd | null; limit: number },
): SQL {
  // The window ends with the position's millisecond, because partitions and index ranges are chosen by the window.
  // The rest of the condition only orders events within that millisecond. Written as a row comparison, the planner
  // would take it for rare and sort the rest of the day.
  const condition =
    after === null
      ? toCondition(zoneId, query)
      : sql`${toCondition(zoneId, { ...query, to: Math.min(query.to, after.at + 1) })}
          and (e.occurred_at < ${toMoment(after.at)} or e.log_id < ${after.logId})`;
  return sql`waf_events e where ${condition} order by e.occurred_at desc, e.log_id desc limit ${limit}::integer`;
}
