import { sql } from "drizzle-orm";
import type { EventKey } from "#model/event-key.ts";
import { toDay } from "#model/horizon.ts";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";
import { proveAnew } from "../coverage/covered-hours.ts";
import { readHourContents } from "../coverage/hour-contents.ts";
import { reopenHours } from "../coverage/reopen-hours.ts";
import { markSourceHours } from "../privacy/erase-events.ts";
import { removeRecords } from "../privacy/erase-records.ts";
import { addOtherTimes } from "../privacy/other-times.ts";
import { countRemoved } from "./merge-doubles.ts";

const REOPENED = "Events that the platform does not show were removed.";

/** Returns the keys of a span's events. */
export async function readEventKeys(db: Queryable, zoneId: number, { from, to }: Span): Promise<EventKey[]> {
  const { rows } = await db.execute<{ [Key in keyof EventKey]: EventKey[Key] }>(sql`
    select (extract(epoch from occurred_at) * 1000)::float8 as "occurredAt", log_id as "logId" from waf_events
    where zone_id = ${zoneId} and occurred_at >= ${new Date(from)} and occurred_at < ${new Date(to)}
    order by occurred_at, log_id`);
  return rows;
}

/** Returns whether the role of this connection may remove events. A process that only answers has no right to. */
export async function mayRemoveEvents(db: Queryable): Promise<boolean> {
  const { rows } = await db.execute<{ may: boolean }>(
    sql`select has_table_privilege('waf_events', 'delete') and has_table_privilege('raw_blocks', 'update') as may`,
  );
  return rows[0]?.may ?? false;
}

/**
 * Removes events of one UTC day with their records, revisions and second times. `event_revisions` keeps the id and the
 * reason (`removed`). Buckets and source series are counted again. Hours from `servedFrom` (epoch
 * ms) on are proven anew; an older seal gets the new contents. The caller holds the lock of the day.
 */
export async function removeEvents(
  tx: Queryable,
  zoneId: number,
  events: readonly EventKey[],
  { atMs, reason, servedFrom }: { atMs: number; reason: string; servedFrom: number },
): Promise<{ events: number; records: number }> {
  const times = events.map(({ occurredAt }) => occurredAt);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const records = await removeRecords(tx, zoneId, await addOtherTimes(tx, zoneId, events));
  const at = sql`${new Date(atMs)}::timestamptz(3)`;
  const keys = sql`unnest(${sql.param(times)}::float8[], ${sql.param(events.map(({ logId }) => logId))}::text[]) as k(ms, id)`;
  const isKey = sql`zone_id = ${zoneId} and log_id = k.id`;
  const keptAt = sql`to_timestamp(k.ms / 1000)::timestamptz(3)`;
  await tx.execute(sql`delete from event_revisions using ${keys} where ${isKey} and occurred_at = ${keptAt}`);
  await tx.execute(sql`delete from event_aliases using ${keys} where ${isKey} and kept_at = ${keptAt}`);
  const { rows } = await tx.execute<{ hour: number; events: number }>(sql`
    with removed as (
      delete from waf_events using ${keys}
      where ${isKey} and occurred_at = ${keptAt} and occurred_at between ${new Date(first)} and ${new Date(last)}
      returning rule_id, occurred_at, log_id),
    noted as (
      insert into event_revisions (zone_id, occurred_at, log_id, field, seen_at, accepted_at, after)
      select ${zoneId}, occurred_at, log_id, 'removed', ${at}, ${at}, ${reason} from removed),
    ${countRemoved(zoneId)}
    select (extract(epoch from date_trunc('hour', occurred_at, 'UTC')) * 1000)::float8 as hour,
      count(*)::integer as events
    from removed group by 1 order by 1`);
  await markSourceHours(tx, zoneId, first, last);
  // A page with these bytes counts as known, and its events would not be stored again.
  await tx.execute(sql`update pages set hash = '' where zone_id = ${zoneId} and day = ${toDay(first)}`);
  const served = rows.flatMap(({ hour }) => (hour >= servedFrom ? [hour] : []));
  const toReopen = served.map((startsAt) => ({ startsAt, reason: REOPENED }));
  await reopenHours(tx, zoneId, toReopen, atMs);
  await proveAnew(tx, zoneId, served, atMs);
  for (const { hour, events: removed } of rows)
    if (hour < servedFrom) await correctSeal(tx, zoneId, { startsAt: hour, removed });
  return { events: rows.reduce((sum, hour) => sum + hour.events, 0), records };
}

/** Gives a seal that cannot be proven anew the contents that the hour has now. */
async function correctSeal(
  tx: Queryable,
  zoneId: number,
  { startsAt, removed }: { startsAt: number; removed: number },
): Promise<void> {
  const { count, ids } = await readHourContents(tx, zoneId, startsAt);
  await tx.execute(sql`
    update coverage_windows set evidence = evidence || jsonb_build_object(
      'stored', ${JSON.stringify({ count, ids })}::jsonb,
      'removed', coalesce((evidence->>'removed')::integer, 0) + ${removed}::integer)
    where zone_id = ${zoneId} and starts_at = ${new Date(startsAt)} and state = 'sealed'`);
}
