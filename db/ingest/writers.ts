import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { COMMAND_SESSIONS, WORK_SESSIONS } from "../postgres/session-names.ts";

/**
 * Returns whether a session of the service's jobs or commands, in this process or in another one, is in a
 * transaction. That is nearly always so while events are copied in bulk, and seldom while few arrive. A role without
 * pg_read_all_stats sees no activity of other roles' sessions.
 */
export async function areWritersAtWork(
  db: Queryable,
  names: readonly string[] = [WORK_SESSIONS, COMMAND_SESSIONS],
): Promise<boolean> {
  const { rows } = await db.execute(sql`
    select 1 from pg_stat_activity
    where application_name in ${names} and state in ('active', 'idle in transaction') limit 1`);
  return rows.length > 0;
}
