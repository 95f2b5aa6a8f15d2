import { and, desc, eq, gt, isNull, lte, sql } from "drizzle-orm";
import type { BackfillRoute } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { backfills } from "../schema/ingest.ts";

/** Identifies a backfill; times in epoch ms. */
export interface BackfillKey {
  readonly zoneId: number;
  readonly route: BackfillRoute;
  readonly from: number;
  readonly to: number;
}

export interface Backfill extends BackfillKey {
  /** Everything in [from, doneThrough) is stored. */
  readonly doneThrough: number;
  /** Null until the backfill ends. */
  readonly endedAt: number | null;
  /** Events that were not stored before. */
  readonly newEvents: number;
}

/**
 * Returns the backfill with this key as it was left, or a new one. A new backfill begins where an unfinished one by
 * the same route stopped, if that one covers the beginning of its span: `-6h` means another span whenever it is
 * typed. Call in a transaction, under the lease of the zone's backfills.
 */
export async function openBackfill(
  tx: Queryable,
  key: BackfillKey,
  { now, restart }: { now: number; restart: boolean },
): Promise<Backfill> {
  if (restart) await tx.delete(backfills).where(isBackfill(key));
  const [known] = await tx.select().from(backfills).where(isBackfill(key));
  if (known !== undefined) return toBackfill(known);
  const before = restart ? undefined : await findUnfinished(tx, key);
  const isWhole = before !== undefined && before.to <= key.to;
  if (isWhole) await tx.delete(backfills).where(isBackfill(before));
  const [started] = await tx
    .insert(backfills)
    .values({
      ...toColumns(key),
      startedAt: new Date(now),
      doneThrough: new Date(Math.min(before?.doneThrough ?? key.from, key.to)),
      newEvents: isWhole ? before.newEvents : 0,
    })
    .returning();
  if (started === undefined) throw new Error("a backfill that was just begun is not there");
  return toBackfill(started);
}

async function findUnfinished(tx: Queryable, { zoneId, route, from }: BackfillKey) {
  const begin = new Date(from);
  const [found] = await tx
    .select()
    .from(backfills)
    .where(
      and(
        eq(backfills.zoneId, zoneId),
        eq(backfills.route, route),
        isNull(backfills.endedAt),
        lte(backfills.fromAt, begin),
        gt(backfills.doneThrough, begin),
      ),
    )
    .orderBy(desc(backfills.doneThrough))
    .limit(1);
  return found === undefined ? undefined : toBackfill(found);
}

/** Adds the events of a page and moves the backfill forward, never back, in the page's transaction. */
export async function advanceBackfill(
  tx: Queryable,
  key: BackfillKey,
  { through, newEvents }: { through: number | null; newEvents: number },
): Promise<void> {
  const done = through === null ? null : new Date(Math.min(through, key.to));
  await tx
    .update(backfills)
    .set({
      newEvents: sql`${backfills.newEvents} + ${newEvents}`,
      ...(done === null ? {} : { doneThrough: sql`greatest(${backfills.doneThrough}, ${done})` }),
    })
    .where(isBackfill(key));
}

/** Ends the backfill and returns how many events it added. */
export async function endBackfill(db: Queryable, key: BackfillKey, now: number): Promise<number> {
  const [ended] = await db
    .update(backfills)
    .set({ endedAt: new Date(now) })
    .where(isBackfill(key))
    .returning({ newEvents: backfills.newEvents });
  return ended?.newEvents ?? 0;
}

function toColumns({ zoneId, route, from, to }: BackfillKey) {
  return { zoneId, route, fromAt: new Date(from), toAt: new Date(to) };
}

function isBackfill(key: BackfillKey) {
  const { zoneId, route, fromAt, toAt } = toColumns(key);
  return and(
    eq(backfills.zoneId, zoneId),
    eq(backfills.route, route),
    eq(backfills.fromAt, fromAt),
    eq(backfills.toAt, toAt),
  );
}

function toBackfill(row: typeof backfills.$inferSelect): Backfill {
  return {
    zoneId: row.zoneId,
    route: row.route,
    from: row.fromAt.getTime(),
    to: row.toAt.getTime(),
    doneThrough: row.doneThrough.getTime(),
    endedAt: row.endedAt?.getTime() ?? null,
    newEvents: row.newEvents,
  };
}
