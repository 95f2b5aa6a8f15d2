/** Ends the alerts of zones that are no longer watched, and locks an alert for an act. */
import { and, asc, eq, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { replicas } from "../schema/service.ts";
import { spikes } from "../schema/spikes.ts";
import { type AlertRow, lockSpike } from "./alerts.ts";

const r = alias(replicas, "r");

/** So long no process may have had a zone. A rolling restart with another configuration takes less. */
const LEFT_FOR = sql.raw("interval '1 hour'");
/** A process writes its sign of life every 15 seconds. */
const ALIVE_WITHIN = sql.raw("interval '2 minutes'");

/**
 * Returns the condition that a zone is no longer watched: no process that had the zone was seen in the last hour, and
 * a process without the zone has been alive for as long. After an outage of the whole service, the second part gives
 * the other processes time to start. All times are Postgres's.
 */
function isUnwatched(zoneId: SQL): SQL {
  return sql`not exists (select from ${replicas} ${r}
      where ${zoneId} = any (${r.zoneIds}) and ${r.seenAt} > now() - ${LEFT_FOR})
    and exists (select from ${replicas} ${r}
      where ${r.zoneIds} <> '{}' and not ${zoneId} = any (${r.zoneIds})
        and ${r.startedAt} <= now() - ${LEFT_FOR} and ${r.seenAt} > now() - ${ALIVE_WITHIN})`;
}

/** Returns the unresolved alerts of zones that are no longer watched, the oldest first. */
export async function listUnwatchedAlerts(
  db: Queryable,
  limit: number,
): Promise<{ readonly id: number; readonly zoneId: number }[]> {
  const rows = await db
    .select({ id: alerts.id, zoneId: alerts.zoneId })
    .from(alerts)
    .where(
      and(sql`${alerts.state} <> 'resolved'`, isNotNull(alerts.zoneId), isUnwatched(sql`${alerts.zoneId}`)),
    )
    .orderBy(asc(alerts.id))
    .limit(limit);
  return rows.flatMap(({ id, zoneId }) => (zoneId === null ? [] : [{ id, zoneId }]));
}

/** Closes the open spikes of zones that are no longer watched, because nobody judges them. Returns their number. */
export async function closeUnwatchedSpikes(db: Queryable, atMs: number): Promise<number> {
  const { rowCount } = await db
    .update(spikes)
    .set({ closedAt: closingAt(atMs) })
    .where(and(isNull(spikes.closedAt), isUnwatched(sql`${spikes.zoneId}`)));
  return rowCount ?? 0;
}

/** Closes one spike, if it is open. */
export async function closeSpike(db: Queryable, id: number, atMs: number): Promise<void> {
  await db
    .update(spikes)
    .set({ closedAt: closingAt(atMs) })
    .where(and(isNull(spikes.closedAt), sql`${spikes.id} = ${id}`));
}

/** A spike that opened by a clock that was ahead does not close before it opened. */
function closingAt(atMs: number): SQL {
  return sql`greatest(${spikes.openedAt}, ${new Date(atMs)}::timestamptz)`;
}

/**
 * Returns the alert as it is now, locked for this transaction, or null when there is none. Locks the alert's spike
 * first, as raise-alerts does. The common order prevents a deadlock, and no transition is written between the two
 * locks.
 */
export async function lockAlert(tx: Queryable, id: number): Promise<AlertRow | null> {
  const [seen] = await tx.select({ spikeId: alerts.spikeId }).from(alerts).where(eq(alerts.id, id));
  if (seen === undefined) return null;
  if (seen.spikeId !== null) await lockSpike(tx, seen.spikeId);
  const [row] = await tx.select().from(alerts).where(eq(alerts.id, id)).for("no key update");
  return row ?? null;
}

/** Stores an act of a person that ends nothing. The alert must be locked. */
export async function storeAct(
  tx: Queryable,
  id: number,
  act: Pick<AlertRow, "transition" | "transitions"> &
    Partial<Pick<AlertRow, "state" | "details" | "acknowledgedAt" | "acknowledgedBy">>,
): Promise<void> {
  await tx.update(alerts).set(act).where(eq(alerts.id, id));
}
