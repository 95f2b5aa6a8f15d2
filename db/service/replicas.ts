import { eq, lt, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { replicas } from "../schema/replicas.ts";

type ReplicaRow = typeof replicas.$inferSelect;
type Replica = Pick<ReplicaRow, "id" | "host" | "pid" | "version" | "roles" | "zoneIds">;

/** Times in epoch ms, on Postgres's clock. */
export interface SeenReplica extends Replica, Pick<ReplicaRow, "ticks"> {
  readonly startedAt: number;
  readonly seenAt: number;
  /** Null while the process runs, and forever if it was killed. */
  readonly stoppedAt: number | null;
  /** Time since `seenAt`, by Postgres's clock, because the caller's clock may differ. */
  readonly silentMs: number;
}

/** Records that this process is alive. Creates its row if it is missing, even if somebody has deleted it. */
export async function beatReplica(
  db: Queryable,
  replica: Replica & Partial<Pick<ReplicaRow, "ticks">>,
): Promise<void> {
  await db
    .insert(replicas)
    .values(replica)
    .onConflictDoUpdate({
      target: replicas.id,
      set: { seenAt: sql`now()`, stoppedAt: null, ticks: replica.ticks },
    });
}

/** Records that this process stops on purpose. */
export async function endReplica(db: Queryable, id: string): Promise<void> {
  await db.update(replicas).set({ seenAt: sql`now()`, stoppedAt: sql`now()` }).where(eq(replicas.id, id));
}

/** Returns the processes, most recently seen first. */
export async function readReplicas(db: Queryable): Promise<SeenReplica[]> {
  const silentMs = sql<number>`greatest(extract(epoch from now() - ${replicas.seenAt}) * 1000, 0)::float8`;
  const rows = await db
    .select({ row: replicas, silentMs })
    .from(replicas)
    .orderBy(sql`${replicas.seenAt} desc`, replicas.id);
  return rows.map(({ row, silentMs }) => ({
    ...row,
    startedAt: row.startedAt.getTime(),
    seenAt: row.seenAt.getTime(),
    stoppedAt: row.stoppedAt?.getTime() ?? null,
    silentMs,
  }));
}

/** Deletes processes that were not seen for `keptMs`, but never the last one that was seen. */
export async function forgetReplicas(db: Queryable, keptMs: number): Promise<void> {
  const isOld = lt(replicas.seenAt, sql`now() - ${keptMs}::double precision * interval '1 millisecond'`);
  await db
    .delete(replicas)
    .where(sql`${isOld} and ${replicas.seenAt} < (select max(${replicas.seenAt}) from ${replicas})`);
}
