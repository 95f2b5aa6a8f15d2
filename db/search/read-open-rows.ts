import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { ArchivedEvent } from "#model/archived-event.ts";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { toCondition } from "./search-condition.ts";
import { FOUND_COLUMNS, type FoundColumns, toFoundEvent } from "./search-found.ts";
import type { EventQuery } from "./search-query.ts";

const e = alias(wafEvents, "e");

/** Events that may be read in order before it pays to find all that match first. */
const ORDERED_READS = 50_000;

interface Place {
  readonly skip: number;
  readonly limit: number;
  /** How many events of the spans match, and about how many there are. */
  readonly matching: number;
  readonly present: number;
}

/**
 * Returns events of some spans, newest first; those of one millisecond by log id, byte by byte, the greatest first. Rare
 * matches are found first, by whatever index knows them, and sorted. Common ones are met soon enough while reading in
 * order. Postgres would have to guess which, and guesses badly about texts.
 */
export async function readOpenRows(
  tx: Queryable,
  zoneId: number,
  query: EventQuery,
  spans: readonly Span[],
  { skip, limit, matching, present }: Place,
): Promise<ArchivedEvent[]> {
  const condition = toCondition(zoneId, query, spans);
  const isCommon = ((skip + limit) / matching) * present <= ORDERED_READS;
  const from = isCommon
    ? sql`${wafEvents} ${e} where ${condition}`
    : sql`(select * from ${wafEvents} ${e} where ${condition} offset 0) ${e}`;
  const found = await tx.execute<FoundColumns>(sql`
    select ${sql.raw(FOUND_COLUMNS)} from ${from}
    order by ${e.occurredAt} desc, ${e.logId} desc limit ${limit} offset ${skip}`);
  return found.rows.map(toFoundEvent);
}
