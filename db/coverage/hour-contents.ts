import { sql } from "drizzle-orm";
import { HOUR_MS } from "#lib/units.ts";
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
  /** When a look first showed another value that no later look has confirmed or dismissed, epoch ms; null if none did. */
  readonly contestedAt: number | null;
  /** Values that later looks changed. */
  readonly revised: number;
}

/** Returns the contents of one hour (epoch ms of its start). Reads every event of the hour. */
export async function readHourContents(
  db: Queryable,
  zoneId: number,
  startsAt: number,
): Promise<HourContents> {
  const { rows } = await db.execute<{ [Key in keyof HourContents]: HourContents[Key] }>(sql`
    select count(*)::integer as count, lpad(to_hex(coalesce(bit_xor(hashed), 0)), 16, '0') as ids,
      coalesce(sum(unresolved), 0)::integer as unresolved, (coalesce(sum(rows), 0) - count(*))::integer as doubled,
      (select extract(epoch from max(seen_at) filter (where accepted_at is null)) * 1000
        from (${revisionsIn(zoneId, startsAt)}) r)::float8
        as "contestedAt",
      (select count(accepted_at) from (${revisionsIn(zoneId, startsAt)}) r)::integer as revised
    from (select ${ID_HASH} as hashed,
        count(*) filter (where feature is null) as unresolved, count(*) as rows
      from waf_events where ${isIn(zoneId, startsAt)} group by log_id) as ids`);
  const [contents] = rows;
  if (contents === undefined) throw new Error("an aggregate without groups returned no row");
  return contents;
}

/** Revisions of values of the hour's events. */
function revisionsIn(zoneId: number, startsAt: number) {
  return sql`select seen_at, accepted_at from event_revisions where ${isIn(zoneId, startsAt)}
    and field not in ('withdrawn', 'removed')`;
}

/** Returns the digests of an hour's events of each feature. Leaves out events whose feature is not known. */
export async function readFeatureIds(
  db: Queryable,
  zoneId: number,
  startsAt: number,
): Promise<{ feature: string; count: number; ids: string }[]> {
  const { rows } = await db.execute<{ feature: string; count: number; ids: string }>(sql`
    select feature, count(*)::integer as count, lpad(to_hex(bit_xor(${ID_HASH})), 16, '0') as ids
    from waf_events where ${isIn(zoneId, startsAt)} and feature is not null group by feature order by feature`);
  return rows;
}

const ID_HASH = sql`('x' || encode(substr(sha256(convert_to(log_id, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint`;

/** Returns every event of one hour, in the order of their ids. A rule that is not known is ''. */
export async function readHourIds(
  db: Queryable,
  zoneId: number,
  startsAt: number,
): Promise<{ logId: string; ruleId: string }[]> {
  const { rows } = await db.execute<{ logId: string; ruleId: string }>(sql`
    select log_id as "logId", coalesce(rule_id, '') as "ruleId" from waf_events where ${isIn(zoneId, startsAt)} order by log_id`);
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
 * Returns the log ids of the first `limit` events of a time span (epoch ms, both ends included), or with `isResolved` of
 * those that the search has shown. Null: of all of them.
 */
export async function readKnownIds(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  { isResolved, limit }: { isResolved: boolean; limit: number | null },
): Promise<string[]> {
  const { rows } = await db.execute<{ logId: string }>(sql`
    select log_id as "logId" from waf_events
    where zone_id = ${zoneId} and occurred_at between ${new Date(fromMs)} and ${new Date(toMs)}
      and (feature is not null or not ${isResolved}::boolean)
    order by occurred_at limit ${limit}::integer`);
  return rows.map(({ logId }) => logId);
}

/**
 * Returns the time of the newest event that the search has shown, with at least `events - 1` others since it, between
 * `fromMs` and `toMs`; null if there are fewer. Epoch ms.
 */
export async function readKnownSince(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs, events }: { fromMs: number; toMs: number; events: number },
): Promise<number | null> {
  const { rows } = await db.execute<{ at: number }>(sql`
    select (extract(epoch from occurred_at) * 1000)::float8 as at from waf_events
    where zone_id = ${zoneId} and occurred_at >= ${new Date(fromMs)} and occurred_at < ${new Date(toMs)}
      and feature is not null
    order by occurred_at desc limit 1 offset ${events - 1}`);
  return rows[0]?.at ?? null;
}

function isIn(zoneId: number, startsAt: number) {
  return sql`zone_id = ${zoneId} and occurred_at >= ${new Date(startsAt)}
    and occurred_at < ${new Date(startsAt + HOUR_MS)}`;
}
