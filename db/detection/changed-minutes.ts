import { and, asc, eq, gt, gte, type SQL, sql } from "drizzle-orm";
import { DAY_MS } from "#lib/units.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { forwardCursors as c, forwardDestinations as d, changedMinutes as m } from "../schema/forwarding.ts";

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
