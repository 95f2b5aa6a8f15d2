/** How far each destination has got, and minutes that changed since. */
import { and, asc, eq, gt, gte, type SQL, sql } from "drizzle-orm";
import { DAY_MS } from "#lib/units.ts";
import type { Queryable } from "../../client.ts";
import { epochMs, names } from "../../postgres/terms.ts";
import { coverageWindows as w } from "../../schema/coverage.ts";
import {
  forwardCursors as c,
  forwardDestinations as d,
  forwardHours as h,
  changedMinutes as m,
} from "../../schema/forwarding.ts";

/** A zone at a destination. */
export interface ForwardedZone {
  readonly destination: string;
  readonly zoneId: number;
}

export interface ForwardCursor {
  /** Start of the first hour that is forwarded, epoch ms. */
  readonly since: number;
  readonly seq: number;
}

export async function readCursor(
  db: Queryable,
  { destination, zoneId }: ForwardedZone,
): Promise<ForwardCursor | null> {
  const [found] = await db
    .select({ since: epochMs(c.since), seq: c.seq })
    .from(c)
    .where(and(eq(c.destination, destination), eq(c.zoneId, zoneId)));
  return found ?? null;
}

/**
 * Makes the cursor of a zone that is new to a destination. Every stored hour since then has to be read as a whole;
 * `since` (epoch ms) is the start of an hour. Minutes that change from now on follow by their numbers.
 */
export async function createCursor(
  tx: Queryable,
  { destination, zoneId }: ForwardedZone,
  since: number,
): Promise<void> {
  const created = await tx
    .insert(c)
    .values({
      destination,
      zoneId,
      since: new Date(since),
      seq: sql`coalesce((select max(${m.seq}) from ${m} where ${m.zoneId} = ${zoneId}), 0)`,
    })
    .onConflictDoNothing()
    .returning({ zoneId: c.zoneId });
  if (created.length === 0) return;
  await tx.execute(sql`
    insert into ${h} (${names(h.destination, h.zoneId, h.startsAt, h.lookFrom, h.lookTo, h.lookAt)})
    select ${destination}, ${zoneId}, ${w.startsAt}, ${w.startsAt}, ${w.startsAt} + interval '1 hour', now()
    from ${w} where ${w.zoneId} = ${zoneId} and ${w.startsAt} >= ${new Date(since)} and ${w.storedCount} > 0
    on conflict do nothing`);
}

/** Moves the cursor on, after everything before has been acknowledged. */
export async function moveCursor(
  tx: Queryable,
  { destination, zoneId }: ForwardedZone,
  seq: number,
): Promise<void> {
  await tx
    .update(c)
    .set({ seq })
    .where(and(eq(c.destination, destination), eq(c.zoneId, zoneId)));
}

/** An hour changes for three days. A destination that nobody has seen for thirty is not waited for. */
const KEPT_MS = 4 * DAY_MS;
const FORGOTTEN_MS = 30 * DAY_MS;

/**
 * Gives the minutes (`minutes`: SQL for their starts) the next numbers. Only the transaction that has taken the zone for
 * its roll-up may call it: another one could commit a greater number first.
 */
export async function markChanged(tx: Queryable, zoneId: number, minutes: SQL): Promise<void> {
  await tx.execute(sql`
    insert into ${m} (${names(m.zoneId, m.minute)}) select ${zoneId}, minute from (${minutes}) as marked(minute)
    order by minute on conflict (${names(m.zoneId, m.minute)}) do update set ${names(m.seq)} = excluded.seq`);
}

/** Returns changed minutes of a zone after a number, in the order of their numbers, that are not before `since` (epoch ms). */
export function readChangedMinutes(
  db: Queryable,
  zoneId: number,
  { seq, since, limit }: { seq: number; since: number; limit: number },
): Promise<{ minute: number; seq: number }[]> {
  return db
    .select({ minute: epochMs(m.minute), seq: m.seq })
    .from(m)
    .where(and(eq(m.zoneId, zoneId), gt(m.seq, seq), gte(m.minute, new Date(since))))
    .orderBy(asc(m.seq))
    .limit(limit);
}

/** Removes the changed minutes of hours that can no longer change, unless a destination has yet to pass them. */
export async function removePassed(db: Queryable, nowMs: number): Promise<void> {
  await db.execute(sql`
    delete from ${m} where ${m.minute} < ${new Date(nowMs - KEPT_MS)} and not exists (
      select from ${c} join ${d} on ${d.destination} = ${c.destination}
      where ${c.zoneId} = ${m.zoneId} and ${c.seq} < ${m.seq} and ${c.since} <= ${m.minute}
        and ${d.seenAt} > ${new Date(nowMs - FORGOTTEN_MS)})`);
}
