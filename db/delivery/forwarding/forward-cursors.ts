import { and, eq, sql } from "drizzle-orm";
import type { Queryable } from "../../client.ts";
import { epochMs, names } from "../../postgres/terms.ts";
import { coverageWindows as w } from "../../schema/coverage.ts";
import { forwardCursors as c, forwardHours as h, changedMinutes as m } from "../../schema/forwarding.ts";

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
