import { eq, sql } from "drizzle-orm";
import { type KnownHorizon, keptFor, WHOLE_HORIZON } from "#model/horizon.ts";
import type { ProvenDay } from "#model/proven-day.ts";
import type { Queryable } from "../client.ts";
import { platformHealth } from "../schema/platform-health.ts";
import { wafEvents } from "../schema/waf-events.ts";

/** Returns how long the platform keeps the zone's events, as it is known. */
export async function readHorizon(db: Queryable, zoneId: number): Promise<KnownHorizon> {
  const { keptMs, keptSince, keptBeforeMs: beforeMs } = platformHealth;
  const [row] = await db
    .select({ keptMs, keptSince, beforeMs })
    .from(platformHealth)
    .where(eq(platformHealth.zoneId, zoneId));
  if (row === undefined) return WHOLE_HORIZON;
  return { keptMs: row.keptMs, since: row.keptSince?.getTime() ?? null, beforeMs: row.beforeMs };
}

/** Returns how long the platform keeps the zone's events, as `keptFor` does; ms. */
export async function readKeptMs(
  db: Queryable,
  zoneId: number,
  now: number,
  forMs?: number,
): Promise<number> {
  return keptFor(await readHorizon(db, zoneId), now, forMs);
}

export async function writeHorizon(
  db: Queryable,
  zoneId: number,
  { keptMs, since, beforeMs }: KnownHorizon,
  atMs: number,
): Promise<void> {
  const known = { keptMs, keptSince: since === null ? null : new Date(since), keptBeforeMs: beforeMs };
  await db
    .insert(platformHealth)
    .values({ zoneId, watchedSince: new Date(atMs), ...known })
    .onConflictDoUpdate({ target: platformHealth.zoneId, set: known });
}

/** Returns the number of stored events of [fromMs, toMs) and the time of the newest of them, epoch ms. */
export async function readGone(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<{ events: number; newestAt: number | null }> {
  const { zoneId: zone, occurredAt } = wafEvents;
  const [row] = await db
    .select({
      events: sql<number>`count(*)::integer`,
      newestAt: sql<number | null>`(extract(epoch from max(${occurredAt})) * 1000)::float8`,
    })
    .from(wafEvents)
    .where(
      sql`${zone} = ${zoneId} and ${occurredAt} >= ${new Date(fromMs)} and ${occurredAt} < ${new Date(toMs)}`,
    );
  return row ?? { events: 0, newestAt: null };
}

/** Returns the days of the zone that were proven anew because of the platform's metrics, by `yyyy-MM-dd`. */
export async function readProvenDays(
  db: Queryable,
  zoneId: number,
): Promise<Readonly<Record<string, ProvenDay>>> {
  const { provenDays } = platformHealth;
  const [row] = await db.select({ provenDays }).from(platformHealth).where(eq(platformHealth.zoneId, zoneId));
  return row?.provenDays ?? {};
}

export async function writeProvenDays(
  db: Queryable,
  zoneId: number,
  provenDays: Readonly<Record<string, ProvenDay>>,
  atMs: number,
): Promise<void> {
  await db
    .insert(platformHealth)
    .values({ zoneId, watchedSince: new Date(atMs), provenDays })
    .onConflictDoUpdate({ target: platformHealth.zoneId, set: { provenDays } });
}
