import { sql } from "drizzle-orm";
import { HOUR_MS } from "#lib/units.ts";
import type { EventKey } from "#model/event-key.ts";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";
import { forgetValues } from "../ingest/event-revisions.ts";
import { eraseRecords, type RecordEraser } from "./erase-records.ts";
import { addOtherTimes } from "./other-times.ts";

/** Value of `ip` in an event whose person was erased. The event's other texts of the request are empty. */
export const ERASED_IP = "erased";

interface Scope extends Span {
  /** Null: every zone. */
  readonly zoneId: number | null;
}

/**
 * Returns the addresses of a span's events and the number of events of each. Leaves out values that hold no address.
 */
export async function countAddresses(
  db: Queryable,
  { zoneId, from, to }: Scope,
): Promise<{ ip: string; events: number }[]> {
  const { rows } = await db.execute<{ ip: string; events: number }>(sql`
    select ip, count(*)::float8 as events from waf_events
    where occurred_at >= ${new Date(from)} and occurred_at < ${new Date(to)} and ip not in ('', ${ERASED_IP})
      and (${zoneId}::integer is null or zone_id = ${zoneId}::integer)
    group by ip`);
  return rows;
}

export interface ZonedEventKey extends EventKey {
  readonly zoneId: number;
}

/**
 * Returns the next events of these addresses in the order of the key, after `after`. Locks them, so that no merge
 * fills them meanwhile.
 */
export async function lockEventsOf(
  tx: Queryable,
  { zoneId, from, to }: Scope,
  ips: readonly string[],
  { after, limit }: { after: ZonedEventKey | null; limit: number },
): Promise<ZonedEventKey[]> {
  const behind =
    after === null
      ? sql`true`
      : sql`(zone_id, occurred_at, log_id) > (${after.zoneId}, ${new Date(after.occurredAt)}, ${after.logId})`;
  const { rows } = await tx.execute<ZonedEventKey & Record<string, unknown>>(sql`
    select zone_id as "zoneId", (extract(epoch from occurred_at) * 1000)::float8 as "occurredAt", log_id as "logId"
    from waf_events
    where occurred_at >= ${new Date(from)} and occurred_at < ${new Date(to)} and ip = any(${sql.param(ips)}::text[])
      and (${zoneId}::integer is null or zone_id = ${zoneId}::integer) and ${behind}
    order by zone_id, occurred_at, log_id limit ${limit} for update`);
  return rows;
}

/**
 * Removes all personal data from these events and their records, also from records under a second time, and their former
 * values. Time, rule, action and country stay, so that counts still add up. An emptied text counts as known, so no route fills it again.
 */
export async function eraseEvents(
  tx: Queryable,
  zoneId: number,
  events: readonly EventKey[],
  eraser: RecordEraser,
): Promise<{ events: number; records: number }> {
  if (events.length === 0) return { events: 0, records: 0 };
  const times = events.map(({ occurredAt }) => occurredAt);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const erased = await tx.execute(sql`
    update waf_events e set ip = ${ERASED_IP}, ua = '', url = '', ja4 = '', message = ''
    from unnest(${sql.param(times)}::float8[], ${sql.param(events.map(({ logId }) => logId))}::text[]) as k(at, id)
    where e.zone_id = ${zoneId} and e.occurred_at = to_timestamp(k.at / 1000)::timestamptz(3) and e.log_id = k.id
      and e.occurred_at between ${new Date(first)} and ${new Date(last)}
      and (e.ip, e.ua, e.url, e.ja4, e.message) is distinct from (${ERASED_IP}, '', '', '', '')`);
  await forgetValues(tx, zoneId, {
    firstAt: first,
    lastAt: last,
    logIds: events.map(({ logId }) => logId),
  });
  await markSourceHours(tx, zoneId, first, last);
  const keys = await addOtherTimes(tx, zoneId, events);
  return { events: erased.rowCount ?? 0, records: await eraseRecords(tx, zoneId, keys, eraser) };
}

/**
 * Empties the records that were kept under the other time of merged doubles whose event is erased. Locks all of the
 * events: an erasure at the same time ends before this read, or sees the aliases.
 */
export async function eraseMergedRecords(
  tx: Queryable,
  zoneId: number,
  doubles: readonly { readonly logId: string; readonly keptAt: number; readonly otherAt: number }[],
  eraser: RecordEraser,
): Promise<void> {
  if (doubles.length === 0) return;
  const times = doubles.map(({ keptAt }) => keptAt);
  const { rows } = await tx.execute<{ index: number; isErased: boolean }>(sql`
    select (k.position - 1)::integer as index, e.ip is not distinct from ${ERASED_IP} as "isErased"
    from unnest(${sql.param(times)}::float8[], ${sql.param(doubles.map(({ logId }) => logId))}::text[])
      with ordinality as k(at, id, position)
    join waf_events e on e.zone_id = ${zoneId} and e.occurred_at = to_timestamp(k.at / 1000)::timestamptz(3)
      and e.log_id = k.id and e.occurred_at between ${new Date(Math.min(...times))} and ${new Date(Math.max(...times))}
    for update of e`);
  const erased = new Set(rows.flatMap(({ index, isErased }) => (isErased ? [index] : [])));
  const keys = doubles
    .filter((_, index) => erased.has(index))
    .map(({ logId, otherAt }) => ({ logId, occurredAt: otherAt }));
  await eraseRecords(tx, zoneId, keys, eraser);
}

/** Has the source series count the hours from `first` to `last` (epoch ms) again. */
export async function markSourceHours(
  tx: Queryable,
  zoneId: number,
  first: number,
  last: number,
): Promise<void> {
  await tx.execute(sql`
    update source_hours set marks = marks + 1, is_stale = true
    where zone_id = ${zoneId} and starts_at > ${new Date(first - HOUR_MS)} and starts_at <= ${new Date(last + HOUR_MS)}`);
}
