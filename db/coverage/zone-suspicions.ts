import { and, eq, inArray, isNull, lt, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { zoneSuspicions } from "../schema/zone-suspicions.ts";

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

export interface SuspectLook {
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
