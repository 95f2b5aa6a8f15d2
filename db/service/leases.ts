import { and, eq, isNotNull, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { FenceLostError } from "../postgres/fence-lost-error.ts";
import { epochMs, names, overwriting } from "../postgres/terms.ts";
import { leases } from "../schema/leases.ts";

const held = alias(leases, "held");
const excluded = alias(leases, "excluded");

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
    .values({ name, holder, fence: 1, expiresAt })
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
    .where(isHeld(name, fence))
    .returning({ name: leases.name });
  return renewed.length === 1;
}

/** Gives the lease back before its time. Does nothing if this owner no longer holds it. */
export async function releaseLease(
  db: Queryable,
  { name, fence }: { name: string; fence: number },
): Promise<void> {
  await db.update(leases).set({ holder: null, expiresAt: null }).where(isHeld(name, fence));
}

/**
 * Fails the transaction if the fence is not the current one, and keeps it current until the commit: the row stays
 * share-locked, so the acquire of a successor waits. A renewal waits too, so make this the last statement before the
 * commit. An expired lease that no other process has taken still counts, because there is no second writer.
 * @throws {FenceLostError}
 */
export async function assertFence(tx: Queryable, name: string, fence: number): Promise<void> {
  const held = await tx.select({ name: leases.name }).from(leases).where(isHeld(name, fence)).for("share");
  if (held.length === 0) throw new FenceLostError(name, fence);
}

/** A period of work that is due once. */
export interface Period {
  readonly name: string;
  readonly periodMs: number;
  /** Periods begin this long after those that are aligned to the epoch. 0 by default. */
  readonly offsetMs?: number;
}

/**
 * Returns the names of those periods that this caller has claimed. Each period is claimed by exactly one caller over
 * all replicas. Periods are aligned to the epoch, plus their offset, on Postgres's clock. Call more often than once per
 * period: a replica whose clock is ahead calls too early and claims nothing. A claimed period is spent even if its work
 * then fails. A missed period is skipped. After a setting has shortened a period, the due time of the longer period is void.
 */
export async function claimDue(db: Queryable, periods: readonly Period[]): Promise<ReadonlySet<string>> {
  const asked = periods.map(({ name }) => name);
  const seconds = periods.map(({ periodMs }) => periodMs / 1_000);
  const offsets = periods.map(({ offsetMs = 0 }) => offsetMs / 1_000);
  // Sorted by name, so that two replicas that claim the same periods lock them in the same order. A due time of the same
  // period is at most one period later than this caller's, whose now() may lie before a boundary that another has passed.
  const claimed = await db.execute<{ name: string }>(sql`
    with asked as (
      select * from unnest(${sql.param(asked)}::text[], ${sql.param(seconds)}::numeric[], ${sql.param(offsets)}::numeric[])
        as periods(name, seconds, shift))
    insert into ${leases} as ${held} (${names(held.name, held.dueAt)})
    select name, to_timestamp((floor((extract(epoch from now()) - shift) / seconds) + 1) * seconds + shift)
    from asked order by name
    on conflict (${names(held.name)}) do update set ${overwriting(held.dueAt)}
    where ${held.dueAt} is null or ${held.dueAt} <= now() or ${held.dueAt} > ${excluded.dueAt}
      + (select seconds from asked where asked.name = ${held.name}) * interval '1 second'
    returning ${held.name}`);
  return new Set(claimed.rows.map(({ name }) => name));
}

function isHeld(name: string, fence: number): SQL | undefined {
  return and(eq(leases.name, name), eq(leases.fence, fence), isNotNull(leases.expiresAt));
}

function later(ttlMs: number): SQL {
  return sql`now() + ${ttlMs}::double precision * interval '1 millisecond'`;
}

/** Returns whether the lease is held now. The result is only a hint: it may change before the caller reads it. */
export async function isLeaseHeld(db: Queryable, name: string): Promise<boolean> {
  const held = await db
    .select({ name: leases.name })
    .from(leases)
    .where(and(eq(leases.name, name), sql`${leases.expiresAt} > now()`));
  return held.length > 0;
}

const TICK = "tick.";

/** Returns when each tick is due next, epoch ms, by name: `poll-events.101`. */
export function listTickTimes(db: Queryable): Promise<{ name: string; dueAt: number }[]> {
  return db
    .select({
      name: sql<string>`substr(${leases.name}, ${TICK.length + 1})`,
      dueAt: epochMs(sql`${leases.dueAt}`),
    })
    .from(leases)
    .where(sql`starts_with(${leases.name}, ${TICK}) and ${leases.dueAt} is not null`)
    .orderBy(leases.name)
    .limit(2000);
}
