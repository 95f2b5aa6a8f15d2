import { type SQL, sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import type { PageQuery, SearchDimension } from "./search-query.ts";
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

/** One page of events, newest first; those of the same millisecond by log id, byte by byte, the greatest first. */
export function searchRows(database: Database, zoneId: number, query: PageQuery): Promise<FoundRows> {
  const condition = toCondition(zoneId, query);
  return inSearchTransaction(database, async (tx) => {
    const total = await countEvents(tx, condition);
    const offset = query.page * query.pageSize;
    if (offset >= total) return { rows: [], total };
    return { rows: await readRows(tx, condition, { limit: query.pageSize, offset }), total };
  });
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
): Promise<FoundEvent[]> {
  const found = await tx.execute<FoundColumns>(sql`
    select ${FOUND_COLUMNS} from waf_events e where ${condition}
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
