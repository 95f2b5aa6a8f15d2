import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/** Which kinds of work lie in the tables for somebody to do now. */
export interface UnfinishedWork {
  readonly staleMinutes: boolean;
  readonly openSpikes: boolean;
  readonly dueNotifications: boolean;
}

/** Three existence checks in one round trip. */
export async function readUnfinishedWork(db: Queryable): Promise<UnfinishedWork> {
  const { rows } = await db.execute<Record<keyof UnfinishedWork, boolean>>(sql`
    select exists (select from dirty_buckets) as "staleMinutes",
      exists (select from spikes s where s.closed_at is null
        or exists (select from alerts a where a.spike_id = s.id and a.state <> 'resolved')) as "openSpikes",
      exists (select from notifications n
        where n.state in ('pending', 'sending') and n.next_attempt_at <= now()) as "dueNotifications"`);
  const [work] = rows;
  if (work === undefined) throw new Error("a query without a from clause returned no row");
  return work;
}
