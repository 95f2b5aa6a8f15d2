import { and, count, eq, gt, gte, lt, lte, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { HOUR_MS } from "#lib/units.ts";
import type { Span } from "#model/horizon.ts";
import type { EventKey } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { forgetValues } from "../ingest/event-revisions.ts";
import { epochMs } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { sourceHours } from "../schema/sources.ts";
import { addOtherTimes, eraseRecords, type RecordEraser } from "./erase-records.ts";

const e = alias(wafEvents, "e");

/**
 * Returns whether an event, or any row with its columns, is empty of everything that an erasure removes. An event that an
 * earlier version has erased has null for its request id.
 */
export function isEmptied(row: typeof e): SQL {
  return sql`((${row.ip}, ${row.ua}, ${row.url}, ${row.ja4}, ${row.message}) is not distinct from (${ERASED_IP}, '', '', '', '')
    and coalesce(${row.requestId}, '') = '' and ${row.matchedKey} is null)`;
}

/** Value of `ip` in an event whose person was erased. The event's other texts of the request are empty. */
export const ERASED_IP = "erased";

interface Scope extends Span {
  /** Null: every zone. */
  readonly zoneId: number | null;
}

/**
 * Returns the addresses of a span's events and the number of events of each. Leaves out values that hold no address.
 */
export function countAddresses(
  db: Queryable,
  { zoneId, from, to }: Scope,
): Promise<{ ip: string; events: number }[]> {
  return db
    .select({ ip: sql<string>`${e.ip}`, events: count() })
    .from(e)
    .where(and(isIn({ zoneId, from, to }), sql`${e.ip} not in ('', ${ERASED_IP})`))
    .groupBy(e.ip);
}

export interface ZonedEventKey extends EventKey {
  readonly zoneId: number;
}

/**
 * Returns the next events of these addresses in the order of the key, after `after`. Locks them, so that no merge
 * fills them meanwhile.
 */
export function lockEventsOf(
  tx: Queryable,
  { zoneId, from, to }: Scope,
  ips: readonly string[],
  { after, limit }: { after: ZonedEventKey | null; limit: number },
): Promise<ZonedEventKey[]> {
  const behind =
    after === null
      ? undefined
      : sql`(${e.zoneId}, ${e.occurredAt}, ${e.logId})
        > (${after.zoneId}, ${new Date(after.occurredAt)}, ${after.logId})`;
  return tx
    .select({ zoneId: e.zoneId, occurredAt: epochMs(e.occurredAt), logId: e.logId })
    .from(e)
    .where(and(isIn({ zoneId, from, to }), sql`${e.ip} = any(${sql.param(ips)}::text[])`, behind))
    .orderBy(e.zoneId, e.occurredAt, e.logId)
    .limit(limit)
    .for("update");
}

function isIn({ zoneId, from, to }: Scope) {
  return and(
    gte(e.occurredAt, new Date(from)),
    lt(e.occurredAt, new Date(to)),
    zoneId === null ? undefined : eq(e.zoneId, zoneId),
  );
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
  const keys = sql`unnest(${sql.param(times)}::float8[], ${sql.param(events.map(({ logId }) => logId))}::text[])
    as k(at, id)`;
  const erased = await tx
    .update(e)
    .set({ ip: ERASED_IP, ua: "", url: "", ja4: "", message: "", requestId: "", matchedKey: null })
    .from(keys)
    .where(sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} = to_timestamp(k.at / 1000)::timestamptz(3)
      and ${e.logId} = k.id and ${e.occurredAt} between ${new Date(first)} and ${new Date(last)}
      and not ${isEmptied(e)}`);
  await forgetValues(tx, zoneId, {
    firstAt: first,
    lastAt: last,
    logIds: events.map(({ logId }) => logId),
  });
  await markSourceHours(tx, zoneId, first, last);
  const all = await addOtherTimes(tx, zoneId, events);
  return { events: erased.rowCount ?? 0, records: await eraseRecords(tx, zoneId, all, eraser) };
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
    select (k.position - 1)::integer as index, ${e.ip} is not distinct from ${ERASED_IP} as "isErased"
    from unnest(${sql.param(times)}::float8[], ${sql.param(doubles.map(({ logId }) => logId))}::text[])
      with ordinality as k(at, id, position)
    join ${wafEvents} ${e} on ${e.zoneId} = ${zoneId} and ${e.occurredAt} = to_timestamp(k.at / 1000)::timestamptz(3)
      and ${e.logId} = k.id
      and ${e.occurredAt} between ${new Date(Math.min(...times))} and ${new Date(Math.max(...times))}
    for update of ${e}`);
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
  const { zoneId: zone, startsAt, marks } = sourceHours;
  await tx
    .update(sourceHours)
    .set({ marks: sql`${marks} + 1`, isStale: true })
    .where(
      and(eq(zone, zoneId), gt(startsAt, new Date(first - HOUR_MS)), lte(startsAt, new Date(last + HOUR_MS))),
    );
}
