import { type SQL, sql } from "drizzle-orm";
import { toCondition, toMoment } from "../search/search-condition.ts";
import type { EventQuery } from "../search/search-query.ts";

/** The last event of a part of an export. */
export interface PartEnd {
  /** Epoch ms. */
  readonly at: number;
  readonly logId: string;
}

/** `end` is null where nothing is behind the part. */
export interface ExportPart<Part> {
  readonly part: Part;
  readonly end: PartEnd | null;
}

/**
 * The parts of an export, each read by a statement of its own that goes on where the last one ended: a slow reader holds
 * neither a connection nor a snapshot. The next part is read while one is written. Events that arrive meanwhile may be
 * in it.
 */
export async function* readParts<Part>(
  read: (after: PartEnd | null) => Promise<ExportPart<Part>>,
): AsyncGenerator<Part, void, undefined> {
  const begin = (after: PartEnd | null) => {
    const reading = read(after);
    // It may fail while the part before it is still being written, when nobody listens yet.
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

/** What the next `limit` events have behind FROM, newest first, those of a millisecond by id, the greatest first. */
export function fromWaf(
  zoneId: number,
  query: EventQuery,
  { after, limit }: { after: PartEnd | null; limit: number },
): SQL {
  // The window ends with the position's millisecond: partitions and index ranges are chosen by it. What is left to tell is
  // only the order within that; as a comparison of rows it would be taken for rare, and the rest of the day be sorted.
  const condition =
    after === null
      ? toCondition(zoneId, query)
      : sql`${toCondition(zoneId, { ...query, to: Math.min(query.to, after.at + 1) })}
          and (e.occurred_at < ${toMoment(after.at)} or e.log_id < ${after.logId})`;
  return sql`waf_events e where ${condition} order by e.occurred_at desc, e.log_id desc limit ${limit}::integer`;
}
