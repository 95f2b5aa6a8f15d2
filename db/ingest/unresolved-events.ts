import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

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
  const { rows } = await db.execute<{ at: number }>(sql`
    select (extract(epoch from occurred_at) * 1000)::float8 as at from waf_events
    where zone_id = ${zoneId} and feature is null and occurred_at >= ${new Date(startsAt)}
      and occurred_at < ${new Date(Math.min(startsAt + 3_600_000, beforeMs))}
    order by occurred_at limit ${MAX_TIMES}`);
  return rows.map(({ at }) => at);
}

/** Marks all events of an hour as resolved, unless the list has stored another one since `seenAt` (epoch ms). */
export async function clearUnresolved(
  db: Queryable,
  zoneId: number,
  { startsAt, seenAt }: { startsAt: number; seenAt: number },
): Promise<void> {
  await db.execute(sql`
    update coverage_windows set unresolved_since = null
    where zone_id = ${zoneId} and starts_at = ${new Date(startsAt)} and unresolved_since <= ${new Date(seenAt)}`);
}
