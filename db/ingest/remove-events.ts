/** Events that are removed, and events that still lack facts. */
import { and, eq, getTableName, gte, isNull, lt, lte, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import { type Span, toDay } from "#model/horizon.ts";
import type { EventKey } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { markSourceHours } from "../people/erase-events.ts";
import { addOtherTimes, removeRecords } from "../people/erase-records.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { proveAnew } from "../proof/covered-hours.ts";
import { readOneHour } from "../proof/hour-contents.ts";
import { reopenHours } from "../proof/reopen-hours.ts";
import { rawBlocks } from "../schema/archive.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { eventAliases, eventRevisions, wafEvents } from "../schema/events.ts";
import { pages } from "../schema/ingest.ts";
import { countRemoved } from "./merge-doubles.ts";

const e = alias(wafEvents, "e");
const w = coverageWindows;
const ea = alias(eventAliases, "ea");
const r = alias(eventRevisions, "r");

const REOPENED = "Events that the platform does not show were removed.";

/** Returns the keys of a span's events. */
export function readEventKeys(db: Queryable, zoneId: number, { from, to }: Span): Promise<EventKey[]> {
  return db
    .select({ occurredAt: epochMs(e.occurredAt), logId: e.logId })
    .from(e)
    .where(and(eq(e.zoneId, zoneId), gte(e.occurredAt, new Date(from)), lt(e.occurredAt, new Date(to))))
    .orderBy(e.occurredAt, e.logId);
}

/** Returns whether the role of this connection may remove events. A process that only answers has no right to. */
export async function mayRemoveEvents(db: Queryable): Promise<boolean> {
  const { rows } = await db.execute<{ may: boolean }>(
    sql`select has_table_privilege(${getTableName(wafEvents)}::text, 'delete')
      and has_table_privilege(${getTableName(rawBlocks)}::text, 'update') as may`,
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
  const isKey = (table: typeof e | typeof ea | typeof r, time: PgColumn) =>
    sql`${table.zoneId} = ${zoneId} and ${table.logId} = k.id and ${time} = to_timestamp(k.ms / 1000)::timestamptz(3)`;
  await tx.execute(sql`delete from ${eventRevisions} ${r} using ${keys} where ${isKey(r, r.occurredAt)}`);
  await tx.execute(sql`delete from ${eventAliases} ${ea} using ${keys} where ${isKey(ea, ea.keptAt)}`);
  const { rows } = await tx.execute<{ hour: number; events: number }>(sql`
    with removed as (
      delete from ${wafEvents} ${e} using ${keys}
      where ${isKey(e, e.occurredAt)} and ${e.occurredAt} between ${new Date(first)} and ${new Date(last)}
      returning ${e.ruleId}, ${e.occurredAt}, ${e.logId}),
    noted as (
      insert into ${eventRevisions} (${names(r.zoneId, r.occurredAt, r.logId, r.field, r.seenAt, r.acceptedAt, r.after)})
      select ${zoneId}, occurred_at, log_id, 'removed', ${at}, ${at}, ${reason} from removed),
    ${countRemoved(zoneId)}
    select ${epochMs(sql`date_trunc('hour', occurred_at, 'UTC')`)} as hour,
      count(*)::integer as events
    from removed group by 1 order by 1`);
  await markSourceHours(tx, zoneId, first, last);
  // A page with these bytes counts as known, and its events would not be stored again.
  await tx
    .update(pages)
    .set({ hash: Buffer.alloc(0) })
    .where(and(eq(pages.zoneId, zoneId), eq(pages.day, toDay(first))));
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
  const { count, ids } = await readOneHour(tx, zoneId, startsAt);
  await tx
    .update(w)
    .set({
      evidence: sql`${w.evidence} || jsonb_build_object('stored', ${JSON.stringify({ count, ids })}::jsonb,
        'removed', coalesce((${w.evidence}->>'removed')::integer, 0) + ${removed}::integer)`,
    })
    .where(and(eq(w.zoneId, zoneId), eq(w.startsAt, new Date(startsAt)), eq(w.state, "sealed")));
}

const MAX_TIMES = 1_000;

/**
 * Returns the times of the hour's events before `beforeMs` that the search has not shown; epoch ms, ascending, the
 * first of many.
 */
export async function readUnresolved(
  db: Queryable,
  zoneId: number,
  { startsAt, beforeMs }: { startsAt: number; beforeMs: number },
): Promise<number[]> {
  const { occurredAt, feature } = wafEvents;
  const rows = await db
    .select({ at: epochMs(occurredAt) })
    .from(wafEvents)
    .where(
      and(
        eq(wafEvents.zoneId, zoneId),
        isNull(feature),
        gte(occurredAt, new Date(startsAt)),
        lt(occurredAt, new Date(Math.min(startsAt + 3_600_000, beforeMs))),
      ),
    )
    .orderBy(occurredAt)
    .limit(MAX_TIMES);
  return rows.map(({ at }) => at);
}

/** Marks all events of an hour as resolved, unless the list has stored another one since `seenAt` (epoch ms). */
export async function clearUnresolved(
  db: Queryable,
  zoneId: number,
  { startsAt, seenAt }: { startsAt: number; seenAt: number },
): Promise<void> {
  await db
    .update(w)
    .set({ unresolvedSince: null })
    .where(
      and(eq(w.zoneId, zoneId), eq(w.startsAt, new Date(startsAt)), lte(w.unresolvedSince, new Date(seenAt))),
    );
}
