import { type SQL, sql } from "drizzle-orm";
import { DAY_MS } from "../../src/lib/units.ts";
import type { Span } from "../../src/model/span.ts";
import { type Database, onConnection, type Queryable } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import { FOUND_COLUMNS, type FoundColumns, type FoundEvent, toFoundEvent } from "./search-found.ts";
import { countStored } from "./search-loose-events.ts";
import { memoryOf } from "./search-memory.ts";
import { type FoundPage, readPage } from "./search-pages.ts";
import { locatePage } from "./search-place.ts";
import type { PageQuery } from "./search-query.ts";
import type { Segment } from "./search-segments.ts";
import { againWithoutTable, inSearchTransaction } from "./search-transaction.ts";

/** Events that may be read in order before it pays to find all that match first. */
const ORDERED_READS = 50_000;

/** One page of events, newest first; those of the same millisecond by log id, byte by byte, the greatest first. */
export function searchRows(database: Database, zoneId: number, query: PageQuery): Promise<FoundPage> {
  if (query.clauses.length > 0) return inSearchTransaction(database, (tx) => findMatches(tx, zoneId, query));
  const memory = memoryOf(database);
  return againWithoutTable(() => onConnection(database, (client) => readPage(client, memory, zoneId, query)));
}

/**
 * A page of what matches. All matches are counted day by day, so that only the days of the page are read for it. There
 * rare matches are found first, by whatever index knows them, and sorted; common ones are met soon enough while reading
 * in order. Postgres would have to guess which, and guesses badly about texts.
 */
async function findMatches(tx: Queryable, zoneId: number, query: PageQuery): Promise<FoundPage> {
  const page = { offset: query.page * query.pageSize, limit: query.pageSize };
  const matches = await countByDay(tx, zoneId, query);
  const total = sumOf(matches);
  if (page.offset >= total) return { rows: [], total };
  const { from, to, skip } = await locatePage(matches, page);
  const matching = sumOf(matches.filter((segment) => segment.from < to && segment.to > from));
  const present = await countStored(tx, zoneId, [cutTo(query, { from, to })]);
  const condition = toCondition(zoneId, query, [cutTo(query, { from, to })]);
  const isCommon = ((skip + page.limit) / matching) * present <= ORDERED_READS;
  const place = { limit: page.limit, offset: skip };
  if (isCommon) return { rows: await readRows(tx, condition, place), total };
  const found = sql`(select * from waf_events e where ${condition} offset 0) e`;
  return { rows: await readRows(tx, sql`true`, place, found), total };
}

/** Newest first. A day is a partition: telling days apart by it costs nothing per match. */
async function countByDay(tx: Queryable, zoneId: number, query: PageQuery): Promise<Segment[]> {
  const found = await tx.execute<{ first: number; total: number }>(sql`
    select (extract(epoch from min(e.occurred_at)) * 1000)::float8 as first, count(*)::float8 as total
    from waf_events e where ${toCondition(zoneId, query)} group by e.tableoid order by 1 desc`);
  return found.rows.map(({ first, total }) => {
    const from = first - (first % DAY_MS);
    return { from, to: from + DAY_MS, total, counted: null };
  });
}

function sumOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, { total }) => sum + total, 0);
}

function cutTo(window: Span, { from, to }: Span): Span {
  return { from: Math.max(from, window.from), to: Math.min(to, window.to) };
}

async function readRows(
  tx: Queryable,
  condition: SQL,
  { limit, offset }: { limit: number; offset: number },
  from = sql`waf_events e`,
): Promise<FoundEvent[]> {
  const found = await tx.execute<FoundColumns>(sql`
    select ${sql.raw(FOUND_COLUMNS)} from ${from} where ${condition}
    order by e.occurred_at desc, e.log_id desc limit ${limit} offset ${offset}`);
  return found.rows.map(toFoundEvent);
}
