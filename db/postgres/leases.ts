/** Leases and replicas: which process does what, and until when. */
import { and, eq, isNotNull, isNull, lt, ne, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { CronRun } from "#lib/cron.ts";
import { readSqlState } from "#lib/errors.ts";
import { READ_TIMELINE } from "#lib/sql-session.ts";
import type { Queryable } from "../client.ts";
import { leases, replicas } from "../schema/service.ts";
import { names, overwriting } from "./terms.ts";

const current = alias(leases, "current");
const former = alias(leases, "f");

/** The lease whose fence is the timeline of the server that has given out numbers so far. No process holds it. */
export const TIMELINE = "server.timeline";
/** More numbers of one kind than a server gives out in the time by which its standby lags. */
const SKIPPED = 10_000;
/** A promoted server may lack the row of a lease. */
const FIRST_FENCE = sql`1 + ${SKIPPED}::bigint * (coalesce(
  (select ${leases.fence} from ${leases} where ${leases.name} = ${TIMELINE}), 1) - 1)`;

/**
 * Takes the lease if no process holds it, if its time is over, or if its holder is the one that is known to have `ended`.
 * Returns the new fence. Returns null while another process holds the lease, even if that is an earlier life of the
 * same holder.
 */
export async function acquireLease(
  db: Queryable,
  { name, holder, ttlMs, ended }: { name: string; holder: string; ttlMs: number; ended?: string },
): Promise<number | null> {
  const expiresAt = later(ttlMs);
  const isFree = sql`${leases.expiresAt} is null or ${leases.expiresAt} <= now()`;
  const taken = await db
    .insert(leases)
    .values({ name, holder, fence: FIRST_FENCE, expiresAt })
    .onConflictDoUpdate({
      target: leases.name,
      set: { holder, fence: sql`${leases.fence} + 1`, expiresAt },
      setWhere: ended === undefined ? isFree : sql`${isFree} or ${eq(leases.holder, ended)}`,
    })
    .returning({ fence: leases.fence });
  return taken[0]?.fence ?? null;
}

/** Returns the holder of the lease, or the last one that did not give it back; null if there is none. */
export async function readHolder(db: Queryable, name: string): Promise<string | null> {
  const found = await db.select({ holder: leases.holder }).from(leases).where(eq(leases.name, name));
  return found[0]?.holder ?? null;
}

/**
 * Extends the lease from now. Returns false if another owner has taken it or it was released. A late renewal succeeds
 * as long as no other process has taken the lease.
 */
export async function renewLease(
  db: Queryable,
  { name, fence, ttlMs }: { name: string; fence: number; ttlMs: number },
): Promise<boolean> {
  const renewed = await db
    .update(leases)
    .set({ expiresAt: later(ttlMs) })
    .where(isOwned(name, fence))
    .returning({ name: leases.name });
  return renewed.length === 1;
}

/** Gives the lease back before its time. Does nothing if this owner no longer holds it. */
export async function releaseLease(
  db: Queryable,
  { name, fence }: { name: string; fence: number },
): Promise<void> {
  await db.update(leases).set({ holder: null, expiresAt: null }).where(isOwned(name, fence));
}

/**
 * Fails the transaction if the fence is not the current one, and keeps it current until the commit: the row stays
 * share-locked, so the acquire of a successor waits. A renewal waits too, so make this the last statement before the
 * commit. An expired lease that no other process has taken still counts, because there is no second writer.
 * @throws {FenceLostError}
 */
export async function assertFence(tx: Queryable, name: string, fence: number): Promise<void> {
  const owned = await tx.select({ name: leases.name }).from(leases).where(isOwned(name, fence)).for("share");
  if (owned.length === 0) throw new FenceLostError(name, fence);
}

export interface TickRun extends CronRun {
  readonly name: string;
}

/**
 * Returns those runs that this caller has claimed, by name, each with the number of claims of its tick so far. Each run is
 * claimed by exactly one caller over all replicas, as long as their clocks differ by less than the pause between two
 * runs. A claimed run is spent even if its work then fails. A missed run is skipped.
 */
export async function claimRuns(
  db: Queryable,
  runs: readonly TickRun[],
): Promise<ReadonlyMap<string, number>> {
  const asked = runs.map(({ name }) => name);
  const times = (read: (run: TickRun) => number) =>
    sql.param(runs.map((run) => new Date(read(run)).toISOString()));
  // Sorted by name, so that two replicas that claim the same runs lock them in the same order. A due time beyond the latest
  // comes from a clock that was ahead, or from an expression that has since been changed.
  const claimed = await db.execute<{ name: string; fence: number }>(sql`
    with asked as (
      select * from unnest(${sql.param(asked)}::text[], ${times(({ at }) => at)}::timestamptz[],
        ${times(({ nextAt }) => nextAt)}::timestamptz[], ${times(({ latestNextAt }) => latestNextAt)}::timestamptz[])
        as runs(name, run_at, next_at, latest))
    insert into ${leases} as ${current} (${names(current.name, current.dueAt, current.fence)})
    select name, next_at, 1 from asked order by name
    on conflict (${names(current.name)}) do update
    set ${overwriting(current.dueAt)}, ${names(current.fence)} = ${current.fence} + 1
    where ${current.dueAt} is null or exists (select from asked where asked.name = ${current.name}
      and (${current.dueAt} <= run_at or ${current.dueAt} > latest))
    returning ${current.name}, ${current.fence}::float8`);
  return new Map(claimed.rows.map(({ name, fence }) => [name, fence]));
}

function isOwned(name: string, fence: number): SQL | undefined {
  return and(eq(leases.name, name), eq(leases.fence, fence), isNotNull(leases.expiresAt));
}

function later(ttlMs: number): SQL {
  return sql`now() + ${ttlMs}::double precision * interval '1 millisecond'`;
}

/** Returns whether a process has the lease now. The result is only a hint: it may change before the caller reads it. */
export async function isLeaseTaken(db: Queryable, name: string): Promise<boolean> {
  const taken = await db
    .select({ name: leases.name })
    .from(leases)
    .where(and(eq(leases.name, name), sql`${leases.expiresAt} > now()`));
  return taken.length > 0;
}

/** A standby, a server without WAL of its own, a role without the right, tables that are not there yet. */
const UNREADABLE = new Set(["55000", "0A000", "42501", "25006", "42P01"]);

/**
 * Makes sure that a server which was promoted gives out no number that the former primary may have given out: a standby
 * that follows asynchronously lacks the newest commits, and would number other alerts, transitions and owners like those
 * that channels, clients and running jobs know. Every lease from before ends. Returns the server's timeline, which
 * changes with each promotion; null if it cannot be read. Called before a connection is first used.
 */
export async function skipLostNumbers(db: Queryable, known: string | null): Promise<string | null> {
  try {
    const { rows } = await db.execute<{ timeline: string }>(sql.raw(READ_TIMELINE));
    const timeline = rows[0]?.timeline ?? null;
    if (timeline === null || timeline === known) return timeline;
    const fence = Number.parseInt(timeline, 16);
    await db.insert(leases).values({ name: TIMELINE, fence }).onConflictDoNothing();
    // One statement, in which the first connection skips the numbers, and all others wait for it. A server may lack what the one
    // before it has skipped as well.
    const isFormer = and(eq(former.name, TIMELINE), ne(former.fence, fence));
    await db.execute(sql`
      with former as materialized (
        select ${SKIPPED}::bigint * greatest(${fence}::bigint - ${former.fence}, 1) as skipped
        from ${leases} ${former} where ${isFormer} for update),
      promoted as (update ${leases} set ${names(leases.fence)} = ${fence} from former
        where ${eq(leases.name, TIMELINE)} returning skipped),
      ended as (update ${leases} as ${current} set ${names(current.fence)} = ${current.fence} + skipped,
          ${names(current.holder)} = null, ${names(current.expiresAt)} = null
        from promoted where ${and(ne(current.name, TIMELINE), isNull(current.dueAt))})
      select setval(oid, nextval(oid) + skipped) from pg_class, promoted
      where relkind = 'S' and relnamespace = 'public'::regnamespace`);
    return timeline;
  } catch (thrown) {
    if (UNREADABLE.has(readSqlState(thrown) ?? "")) return null;
    throw thrown;
  }
}

/**
 * Thrown when another owner has taken the lease over, or the lease was given back, so that the caller must not
 * commit.
 */
export class FenceLostError extends Error {
  override readonly name = "FenceLostError";
  readonly code = "FENCE_LOST";
  readonly disposition = "give-up";

  constructor(leaseName: string, fence: number) {
    super(`fence ${fence} of lease ${leaseName} is no longer the current one`);
  }
}

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
