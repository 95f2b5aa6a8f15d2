import { and, eq, inArray, isNull, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { zoneSuspicions } from "../schema/zone-suspicions.ts";

export type SuspectRoute = (typeof zoneSuspicions.$inferSelect)["route"];

/** A route of a zone that is suspect; times in epoch ms. */
export interface Suspicion {
  readonly zoneId: number;
  readonly route: SuspectRoute;
  readonly since: number;
  readonly lastSeenAt: number;
  /** The first look since `lastSeenAt` that did not contradict; null before that look. */
  readonly agreedSince: number | null;
  readonly reason: string;
  readonly details: unknown;
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
  return rows.map(toSuspicion);
}

function toSuspicion(row: typeof zoneSuspicions.$inferSelect): Suspicion {
  const { zoneId, route, since, lastSeenAt, agreedSince, reason, details } = row;
  const agreedAt = agreedSince?.getTime() ?? null;
  return {
    zoneId,
    route,
    since: since.getTime(),
    lastSeenAt: lastSeenAt.getTime(),
    agreedSince: agreedAt,
    reason,
    details,
  };
}

/** Returns the latest suspicion of a route, even if it is over, or null when there never was one. */
export async function readSuspicion(
  db: Queryable,
  zoneId: number,
  route: SuspectRoute,
): Promise<(Suspicion & { readonly clearedAt: number | null }) | null> {
  const [row] = await db
    .select()
    .from(zoneSuspicions)
    .where(and(eq(zoneSuspicions.zoneId, zoneId), eq(zoneSuspicions.route, route)));
  return row === undefined ? null : { ...toSuspicion(row), clearedAt: row.clearedAt?.getTime() ?? null };
}

export interface SuspectLook {
  readonly zoneId: number;
  readonly route: SuspectRoute;
  readonly atMs: number;
}

/**
 * Marks the route as suspect, because a look contradicted an earlier one. Returns true when the route was not suspect
 * before.
 */
export async function noteContradiction(
  db: Queryable,
  { zoneId, route, atMs }: SuspectLook,
  { reason, details = null }: { reason: string; details?: unknown },
): Promise<boolean> {
  const at = new Date(atMs);
  const isOver = sql`${zoneSuspicions.clearedAt} is not null`;
  const [row] = await db
    .insert(zoneSuspicions)
    .values({ zoneId, route, since: at, lastSeenAt: at, reason, details })
    .onConflictDoUpdate({
      target: [zoneSuspicions.zoneId, zoneSuspicions.route],
      set: {
        since: sql`case when ${isOver} then excluded.since else ${zoneSuspicions.since} end`,
        lastSeenAt: sql`greatest(${zoneSuspicions.lastSeenAt}, excluded.last_seen_at)`,
        agreedSince: null,
        clearedAt: null,
        reason: sql`excluded.reason`,
        details: sql`excluded.details`,
      },
    })
    .returning({ since: zoneSuspicions.since });
  return row?.since.getTime() === atMs;
}

/**
 * Records that a look agreed with earlier looks. The second such look, `agreeMs` or more after the first, clears the
 * suspicion. Returns true when it did.
 */
export async function noteAgreement(
  db: Queryable,
  { zoneId, route, atMs }: SuspectLook,
  agreeMs: number,
): Promise<boolean> {
  const at = new Date(atMs);
  // No route may have agreed before this comparison. With `agreeMs` 0 the first such comparison clears the suspicion.
  const isLongEnough = sql`coalesce(${zoneSuspicions.agreedSince}, ${at}::timestamptz) <= ${new Date(atMs - agreeMs)}::timestamptz`;
  const [row] = await db
    .update(zoneSuspicions)
    .set({
      agreedSince: sql`coalesce(${zoneSuspicions.agreedSince}, ${at}::timestamptz)`,
      clearedAt: sql`case when ${isLongEnough} then ${at}::timestamptz end`,
    })
    .where(
      and(
        eq(zoneSuspicions.zoneId, zoneId),
        eq(zoneSuspicions.route, route),
        isNull(zoneSuspicions.clearedAt),
        sql`${zoneSuspicions.lastSeenAt} < ${at}`,
      ),
    )
    .returning({ clearedAt: zoneSuspicions.clearedAt });
  return row?.clearedAt != null;
}
