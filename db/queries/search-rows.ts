import { type SQL, sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import type { PageQuery, SearchDimension } from "./search-query.ts";
import { locatePage, readSegments } from "./search-segments.ts";
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

/** One page of events, newest first; those of the same millisecond by log id, byte by byte, the greatest first. */
export function searchRows(database: Database, zoneId: number, query: PageQuery): Promise<FoundRows> {
  const asked = { offset: query.page * query.pageSize, limit: query.pageSize };
  return inSearchTransaction(database, async (tx) => {
    const segments = await readSegments(tx, zoneId, query);
    const all = segments.reduce((sum, { total }) => sum + total, 0);
    if (query.clauses.length > 0) return findMatches(tx, zoneId, query, { ...asked, all });
    if (asked.offset >= all) return { rows: [], total: all };
    const { from, to, skip } = await locatePage(tx, zoneId, segments, asked);
    const span = { from: Math.max(from, query.from), to: Math.min(to, query.to) };
    const condition = toCondition(zoneId, query, [span]);
    return { rows: await readRows(tx, condition, { limit: query.pageSize, offset: skip }), total: all };
  });
}

/**
 * A page of what matches. Rare matches are found first, by whatever index knows them, and sorted; common ones are met
 * soon enough while reading in order. Postgres would have to guess which, and guesses badly about texts.
 */
async function findMatches(
  tx: Queryable,
  zoneId: number,
  query: PageQuery,
  { offset, limit, all }: { offset: number; limit: number; all: number },
): Promise<FoundRows> {
  const condition = toCondition(zoneId, query);
  const total = all === 0 ? 0 : await countEvents(tx, condition);
  if (offset >= total) return { rows: [], total };
  const isCommon = ((offset + limit) / total) * all <= ORDERED_READS;
  const source = isCommon ? condition : sql`true`;
  const from = isCommon ? sql`waf_events e` : sql`(select * from waf_events e where ${condition} offset 0) e`;
  return { rows: await readRows(tx, source, { limit, offset }, from), total };
}

async function countEvents(tx: Queryable, condition: SQL): Promise<number> {
  const found = await tx.execute<{ total: number }>(
    sql`select count(*)::float8 as total from waf_events e where ${condition}`,
  );
  return found.rows[0]?.total ?? 0;
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
