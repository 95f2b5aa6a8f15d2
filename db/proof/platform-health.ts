/** The platform by zone: its answers and refusals, the routes that are suspect, and the zones that rise. */
import { and, eq, gt, inArray, isNull, lt, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { KnownHorizon } from "#model/horizon.ts";
import type { RisingZone } from "#model/zones.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { coverageWindows, platformHealth, zoneSuspicions } from "../schema/coverage.ts";
import { ingestCursors } from "../schema/ingest.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { spikes } from "../schema/spikes.ts";

const w = alias(coverageWindows, "w");
const c = alias(ingestCursors, "c");
const h = alias(platformHealth, "h");

/** Stores that the platform returned events of the zone. The time never moves back. */
export async function recordAnswer(db: Queryable, zoneId: number, atMs: number): Promise<void> {
  const at = new Date(atMs);
  await db
    .insert(platformHealth)
    .values({ zoneId, watchedSince: at, answeredAt: at })
    .onConflictDoUpdate({
      target: platformHealth.zoneId,
      set: { answeredAt: sql`greatest(${platformHealth.answeredAt}, excluded.answered_at)` },
    });
}

/** Stores that the platform refused this key's request. Consecutive refusals are one problem, until the next answer. */
export async function recordRefusal(
  db: Queryable,
  zoneId: number,
  { atMs, code }: { atMs: number; code: string },
): Promise<void> {
  const at = new Date(atMs);
  const { answeredAt, refusedSince } = platformHealth;
  await db
    .insert(platformHealth)
    .values({ zoneId, watchedSince: at, refusedSince: at, refusedWith: code })
    .onConflictDoUpdate({
      target: platformHealth.zoneId,
      set: {
        refusedWith: code,
        refusedSince: sql`case when ${refusedSince} > coalesce(${answeredAt}, '-infinity') then ${refusedSince}
          else greatest(excluded.refused_since, ${answeredAt} + interval '1 millisecond') end`,
      },
    });
}

/** Stores that these zones are watched now. After a break of more than `breakMs` the watched time begins again. */
export async function watchZones(
  db: Queryable,
  zoneIds: readonly number[],
  { nowMs, breakMs }: { nowMs: number; breakMs: number },
): Promise<void> {
  const now = new Date(nowMs);
  const isNew = sql`coalesce(${platformHealth.checkedAt} < ${new Date(nowMs - breakMs)}, true)`;
  for (const zoneId of [...zoneIds].sort((a, b) => a - b)) {
    await db
      .insert(platformHealth)
      .values({ zoneId, watchedSince: now, checkedAt: now })
      .onConflictDoUpdate({
        target: platformHealth.zoneId,
        set: {
          checkedAt: sql`greatest(${platformHealth.checkedAt}, excluded.checked_at)`,
          watchedSince: sql`case when ${isNew} then excluded.watched_since else ${platformHealth.watchedSince} end`,
        },
      });
  }
}

/** Returns the zones that report-service has checked since then, epoch ms. */
export async function listWatchedZones(db: Queryable, sinceMs: number): Promise<number[]> {
  const { zoneId, checkedAt } = platformHealth;
  const rows = await db
    .select({ zoneId })
    .from(platformHealth)
    .where(gt(checkedAt, new Date(sinceMs)))
    .orderBy(zoneId);
  return rows.map((row) => row.zoneId);
}

/** Health of a zone; times in epoch ms, null if the event has not happened. */
export interface ZoneHealth {
  readonly zoneId: number;
  readonly watchedSince: number | null;
  readonly answeredAt: number | null;
  readonly refusedSince: number | null;
  readonly refusedWith: string | null;
  /** When report-service last checked the zone. */
  readonly checkedAt: number | null;
  /** End of the newest span that was searched or of the newest list pass that was read to its end. */
  readonly polledThrough: number | null;
  readonly horizon: KnownHorizon;
}

/** Returns the health of each of these zones, in their order. */
export async function readZoneHealth(db: Queryable, zoneIds: readonly number[]): Promise<ZoneHealth[]> {
  const { rows } = await db.execute<Omit<ZoneHealth, "horizon"> & KnownHorizon & Record<string, unknown>>(sql`
    select z.zone_id as "zoneId", ${epochMs(h.watchedSince)} as "watchedSince", ${epochMs(h.checkedAt)} as "checkedAt",
      ${h.keptMs} as "keptMs", ${epochMs(h.keptSince)} as "since", ${h.keptBeforeMs} as "beforeMs",
      ${epochMs(h.answeredAt)} as "answeredAt", ${epochMs(h.refusedSince)} as "refusedSince", ${h.refusedWith} as "refusedWith",
      greatest(
        (select ${epochMs(w.searchedThrough)} from ${coverageWindows} ${w}
          where ${w.zoneId} = z.zone_id and ${w.searchedThrough} is not null order by ${w.startsAt} desc limit 1),
        (select ${epochMs(sql`max(${c.startedAt})`)} from ${ingestCursors} ${c}
          where ${c.zoneId} = z.zone_id and ${c.passResult} in ('full', 'short'))) as "polledThrough"
    from unnest(${sql.param([...zoneIds])}::integer[]) with ordinality as z(zone_id, place)
    left join ${platformHealth} ${h} on ${h.zoneId} = z.zone_id order by z.place`);
  return rows.map(({ keptMs, since, beforeMs, ...zone }) => ({
    ...zone,
    horizon: { keptMs, since, beforeMs },
  }));
}

type SuspectRoute = (typeof zoneSuspicions.$inferSelect)["route"];

/** A route of a zone that is suspect; times in epoch ms. */
export interface Suspicion {
  readonly zoneId: number;
  readonly route: SuspectRoute;
  readonly isWhole: boolean;
  readonly since: number;
  /** The latest look that contradicted. */
  readonly lastSeenAt: number;
  readonly reason: string;
}

/** Returns the routes of these zones that are suspect now, oldest first. Without `zoneIds`, of every zone. */
export async function readSuspicions(db: Queryable, zoneIds?: readonly number[]): Promise<Suspicion[]> {
  const rows = await db
    .select()
    .from(zoneSuspicions)
    .where(
      and(
        isNull(zoneSuspicions.clearedAt),
        zoneIds === undefined ? undefined : inArray(zoneSuspicions.zoneId, [...zoneIds]),
      ),
    )
    .orderBy(zoneSuspicions.since, zoneSuspicions.zoneId, zoneSuspicions.route);
  return rows.map(({ since, lastSeenAt, clearedAt: _clearedAt, ...row }) => ({
    ...row,
    since: since.getTime(),
    lastSeenAt: lastSeenAt.getTime(),
  }));
}

interface SuspectLook {
  readonly zoneId: number;
  readonly route: SuspectRoute;
  readonly atMs: number;
}

/** Marks the route as suspect. Returns since when it is, epoch ms. */
export async function noteSuspicion(
  db: Queryable,
  { zoneId, route, atMs }: SuspectLook,
  { reason, isWhole }: { reason: string; isWhole: boolean },
): Promise<number> {
  const at = new Date(atMs);
  const [row] = await db
    .insert(zoneSuspicions)
    .values({ zoneId, route, since: at, lastSeenAt: at, reason, isWhole })
    .onConflictDoUpdate({
      target: [zoneSuspicions.zoneId, zoneSuspicions.route],
      set: {
        since: sql`case when ${zoneSuspicions.clearedAt} is null then ${zoneSuspicions.since} else excluded.since end`,
        lastSeenAt: sql`greatest(${zoneSuspicions.lastSeenAt}, excluded.last_seen_at)`,
        clearedAt: null,
        isWhole,
        reason: sql`excluded.reason`,
      },
    })
    .returning({ since: zoneSuspicions.since });
  return row?.since.getTime() ?? atMs;
}

/** Clears the suspicion of a route, unless a later look contradicted. Returns true if it was suspect. */
export async function clearSuspicion(db: Queryable, { zoneId, route, atMs }: SuspectLook): Promise<boolean> {
  const { rowCount } = await db
    .update(zoneSuspicions)
    .set({ clearedAt: new Date(atMs) })
    .where(
      and(
        eq(zoneSuspicions.zoneId, zoneId),
        eq(zoneSuspicions.route, route),
        isNull(zoneSuspicions.clearedAt),
        lt(zoneSuspicions.lastSeenAt, new Date(atMs)),
      ),
    );
  return (rowCount ?? 0) > 0;
}

const b = alias(ruleBuckets, "b");
const s = alias(spikes, "s");

/** Longer than the pause between two runs of the detector. */
const RISING_MS = 60_000;

const at = (ms: number) => sql`to_timestamp(${ms}::float8 / 1000)`;

/** Returns whether something of the zone is near its threshold, or has lately become a spike. */
function isRisingAt(nowMs: number): SQL {
  return sql`(${h.risingUntil} > ${at(nowMs)} or exists (select from ${spikes} ${s}
    where ${s.zoneId} = ${h.zoneId} and ${s.openedAt} > ${at(nowMs)} - interval '15 minutes'))`;
}

/** Stores that something rises in the zones. Every run finds the same zones, so only what ends soon is written. */
export async function noteRising(db: Queryable, zoneIds: readonly number[], nowMs: number): Promise<void> {
  if (zoneIds.length === 0) return;
  // Locked in the order of zones, because another replica may write the same ones.
  await db.execute(sql`
    with ending as materialized (
      select ${h.zoneId} from ${platformHealth} ${h} where ${h.zoneId} = any (${sql.param(zoneIds)}::integer[])
        and coalesce(${h.risingUntil} < ${at(nowMs + RISING_MS / 2)}, true)
      order by ${h.zoneId} for no key update)
    update ${platformHealth} ${h} set ${names(h.risingUntil)} = ${at(nowMs + RISING_MS)}
    from ending where ${h.zoneId} = ending.zone_id`);
}

export async function isRising(db: Queryable, zoneId: number, nowMs: number): Promise<boolean> {
  const { rows } = await db.execute(sql`
    select from ${platformHealth} ${h} where ${h.zoneId} = ${zoneId} and ${isRisingAt(nowMs)}`);
  return rows.length > 0;
}

/**
 * Returns those of the zones in which something rises, the one first whose search is the oldest. Leaves out a zone that
 * the platform refuses: it would always be the first.
 */
export async function listRisingZones(
  db: Queryable,
  zoneIds: readonly number[],
  nowMs: number,
): Promise<RisingZone[]> {
  const { rows } = await db.execute<RisingZone & Record<string, unknown>>(sql`
    select ${h.zoneId} as "zoneId",
      (select ${epochMs(sql`max(${w.searchedThrough})`)} from ${coverageWindows} ${w}
        where ${w.zoneId} = ${h.zoneId} and ${w.startsAt} > ${at(nowMs)} - interval '2 hours') as "searchedThroughMs",
      (select coalesce(sum(${b.total}), 0)::float8 from ${ruleBuckets} ${b} where ${b.zoneId} = ${h.zoneId}
        and ${b.width} = 60 and ${b.startsAt} > ${at(nowMs)} - interval '3 minutes') as events
    from ${platformHealth} ${h} where ${h.zoneId} = any (${sql.param(zoneIds)}::integer[]) and ${isRisingAt(nowMs)}
      and coalesce(${h.refusedSince} <= ${h.answeredAt}, ${h.refusedSince} is null)
    order by "searchedThroughMs" nulls first, ${h.zoneId}`);
  return rows;
}
