import { gt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { ingestCursors } from "../schema/ingest-cursors.ts";
import { platformHealth } from "../schema/platform-health.ts";

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
  /** End of the newest span that was searched or of the newest list pass that was read to its end. */
  readonly polledThrough: number | null;
}

/** Returns the health of each of these zones, in their order. */
export async function readZoneHealth(db: Queryable, zoneIds: readonly number[]): Promise<ZoneHealth[]> {
  const { rows } = await db.execute<{ [Key in keyof ZoneHealth]: ZoneHealth[Key] }>(sql`
    select z.zone_id as "zoneId", ${epochMs(h.watchedSince)} as "watchedSince",
      ${epochMs(h.answeredAt)} as "answeredAt", ${epochMs(h.refusedSince)} as "refusedSince", ${h.refusedWith} as "refusedWith",
      greatest(
        (select ${epochMs(sql`max(${w.searchedThrough})`)} from ${coverageWindows} ${w} where ${w.zoneId} = z.zone_id),
        (select ${epochMs(sql`max(${c.startedAt})`)} from ${ingestCursors} ${c}
          where ${c.zoneId} = z.zone_id and ${c.passResult} in ('full', 'short'))) as "polledThrough"
    from unnest(${sql.param([...zoneIds])}::integer[]) with ordinality as z(zone_id, place)
    left join ${platformHealth} ${h} on ${h.zoneId} = z.zone_id order by z.place`);
  return rows;
}

/** Returns since when, epoch ms, each zone is watched whose watch began after `sinceMs`. */
export async function readNewlyWatched(db: Queryable, sinceMs: number): Promise<ReadonlyMap<number, number>> {
  const { zoneId, watchedSince } = platformHealth;
  const rows = await db
    .select({ zoneId, watchedSince })
    .from(platformHealth)
    .where(gt(watchedSince, new Date(sinceMs)));
  return new Map(rows.map((row) => [row.zoneId, row.watchedSince.getTime()]));
}
