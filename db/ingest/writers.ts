import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { COMMAND_SESSIONS, WORK_SESSIONS } from "../postgres/session-names.ts";

/**
 * Whether a session of the service's own work, of this process or of any other on the server, is in the middle of
 * something: nearly always while events are copied in bulk, and seldom while few arrive. A role that may not look at the
 * sessions of others (pg_read_all_stats) sees none of theirs at work.
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
