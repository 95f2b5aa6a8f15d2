import { eq } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { type AlertRow, lockSpike } from "./alerts.ts";

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

/** Stores an acknowledgement. The alert must be locked. */
export async function acknowledgeAlert(
  tx: Queryable,
  id: number,
  act: Pick<AlertRow, "transition" | "transitions" | "details" | "acknowledgedAt" | "acknowledgedBy">,
): Promise<void> {
  await tx
    .update(alerts)
    .set({ ...act, state: "acknowledged" })
    .where(eq(alerts.id, id));
}
