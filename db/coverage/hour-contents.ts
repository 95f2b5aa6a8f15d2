import { sql } from "drizzle-orm";
import { HOUR_MS } from "../../src/lib/units.ts";
import type { Queryable } from "../client.ts";

/** The stored events of an hour. */
export interface HourContents {
  /** Distinct log ids. */
  readonly count: number;
  /** Exclusive or of the first eight bytes of the SHA-256 of each log id, as hex. */
  readonly ids: string;
  /** Events whose dimensions the search has not given. */
  readonly unresolved: number;
  /** Rows beyond the first of a log id. */
  readonly doubled: number;
}

/** Returns the contents of one hour (epoch ms of its start). Reads every event of the hour. */
export async function readHourContents(
  db: Queryable,
  zoneId: number,
  startsAt: number,
): Promise<HourContents> {
  const { rows } = await db.execute<{ count: number; ids: string; unresolved: number; doubled: number }>(sql`
    select count(*)::integer as count, lpad(to_hex(coalesce(bit_xor(hashed), 0)), 16, '0') as ids,
      coalesce(sum(unresolved), 0)::integer as unresolved, (coalesce(sum(rows), 0) - count(*))::integer as doubled
    from (select ('x' || encode(substr(sha256(convert_to(log_id, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint as hashed,
        count(*) filter (where feature is null) as unresolved, count(*) as rows
      from waf_events where ${isIn(zoneId, startsAt)} group by log_id) as ids`);
  return rows[0] ?? { count: 0, ids: "0".repeat(16), unresolved: 0, doubled: 0 };
}

interface StoredId {
  readonly logId: string;
  /** '' if the rule is not known. */
  readonly ruleId: string;
  /** True if the search has shown the event. */
  readonly isResolved: boolean;
}

/** Returns every event of one hour, in the order of their ids. */
export async function readHourIds(db: Queryable, zoneId: number, startsAt: number): Promise<StoredId[]> {
  const { rows } = await db.execute<{ logId: string; ruleId: string; isResolved: boolean }>(sql`
    select log_id as "logId", coalesce(rule_id, '') as "ruleId", feature is not null as "isResolved"
    from waf_events where ${isIn(zoneId, startsAt)} order by log_id`);
  return rows;
}

/** The log ids of [fromMs, toMs) that are stored under another time too, in the span or within an hour of it. */
export async function readDoubledIds(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<string[]> {
  const [from, to] = [new Date(fromMs - HOUR_MS), new Date(toMs + HOUR_MS)];
  const { rows } = await db.execute<{ log_id: string }>(sql`
    select log_id from waf_events
    where zone_id = ${zoneId} and occurred_at >= ${from} and occurred_at < ${to}
    group by log_id having count(*) > 1 and bool_or(occurred_at >= ${new Date(fromMs)}
      and occurred_at < ${new Date(toMs)})
    order by log_id`);
  return rows.map(({ log_id }) => log_id);
}

/**
 * Returns how many events of [fromMs, toMs) the search has shown. An event that is stored under two times counts
 * once.
 */
export async function countResolved(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<number> {
  const { rows } = await db.execute<{ events: number }>(sql`
    select count(distinct log_id)::integer as events from waf_events where zone_id = ${zoneId} and feature is not null
      and occurred_at >= ${new Date(fromMs)} and occurred_at < ${new Date(toMs)}`);
  return rows[0]?.events ?? 0;
}

function isIn(zoneId: number, startsAt: number) {
  return sql`zone_id = ${zoneId} and occurred_at >= ${new Date(startsAt)}
    and occurred_at < ${new Date(startsAt + HOUR_MS)}`;
}
