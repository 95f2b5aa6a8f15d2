import { type SQL, sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { type Span, toCondition } from "./search-condition.ts";
import type { PageQuery, SearchDimension } from "./search-query.ts";
import { locatePage, readSegments, type Segment } from "./search-segments.ts";
import { inSearchTransaction } from "./search-transaction.ts";

/** One event; what is not known is ''. */
export interface FoundEvent {
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  readonly fields: Readonly<Record<SearchDimension, string>>;
  readonly message: string;
}

export interface FoundRows {
  readonly rows: readonly FoundEvent[];
  /** Of all pages. */
  readonly total: number;
}

/** Events that may be read in order before it pays to find all that match first. */
const ORDERED_READS = 50_000;
const DAY_MS = 86_400_000;

/** One page of events, newest first; those of the same millisecond by log id, byte by byte, the greatest first. */
export function searchRows(database: Database, zoneId: number, query: PageQuery): Promise<FoundRows> {
  return inSearchTransaction(database, async (tx) => {
    const segments = await readSegments(tx, zoneId, query);
    if (query.clauses.length > 0) return findMatches(tx, zoneId, query, segments);
    const total = sumOf(segments);
    const page = { offset: query.page * query.pageSize, limit: query.pageSize };
    if (page.offset >= total) return { rows: [], total };
    const { from, to, skip } = await locatePage(tx, zoneId, segments, page);
    const condition = toCondition(zoneId, query, [cutTo(query, { from, to })]);
    return { rows: await readRows(tx, condition, { limit: page.limit, offset: skip }), total };
  });
}

/**
 * A page of what matches. All matches are counted day by day, so that only the days of the page are read for it. There
 * rare matches are found first, by whatever index knows them, and sorted; common ones are met soon enough while reading
 * in order. Postgres would have to guess which, and guesses badly about texts.
 */
async function findMatches(
  tx: Queryable,
  zoneId: number,
  query: PageQuery,
  segments: readonly Segment[],
): Promise<FoundRows> {
  const page = { offset: query.page * query.pageSize, limit: query.pageSize };
  const matches = segments.length === 0 ? [] : await countByDay(tx, zoneId, query);
  const total = sumOf(matches);
  if (page.offset >= total) return { rows: [], total };
  const { from, to, skip } = await locatePage(tx, zoneId, matches, page);
  const isOnPage = (segment: Segment) => segment.from < to && segment.to > from;
  const [matching, present] = [sumOf(matches.filter(isOnPage)), sumOf(segments.filter(isOnPage))];
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
    return { from, to: from + DAY_MS, total, day: null };
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
    select ${FOUND_COLUMNS} from ${from} where ${condition}
    order by e.occurred_at desc, e.log_id desc limit ${limit} offset ${offset}`);
  return found.rows.map(toFoundEvent);
}

/** A row as `FOUND_COLUMNS` selects it. */
export interface FoundColumns extends Record<SearchDimension, string>, Record<string, unknown> {
  readonly at: number;
  readonly log_id: string;
  readonly message: string;
}

export const FOUND_COLUMNS = sql.raw(`(extract(epoch from e.occurred_at) * 1000)::float8 as at, e.log_id,
  coalesce(e.feature, '') as feature, coalesce(e.rule_id, '') as "ruleId", coalesce(e.ip, '') as ip,
  coalesce(e.ja4, '') as ja4, coalesce(e.ua, '') as ua, coalesce(e.url, '') as url, coalesce(e.asn, '') as asn,
  coalesce(e.country, '') as country, coalesce(e.action, '') as action, coalesce(e.message, '') as message`);

export function toFoundEvent(row: FoundColumns): FoundEvent {
  const { at, log_id: logId, message, feature, ruleId, ip, ja4, ua, url, asn, country, action } = row;
  return {
    logId,
    occurredAt: at,
    fields: { feature, ruleId, ip, ja4, ua, url, asn, country, action },
    message,
  };
}
