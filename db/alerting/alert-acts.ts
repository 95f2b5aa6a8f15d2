import { eq } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { type AlertRow, lockSpike } from "./alerts.ts";

/**
 * The alert as it is now, for this transaction alone; null when there is none. Its spike is locked first, as raise-alerts
 * does, so that neither waits for the other in turn and nothing is said of it in between.
 */
export async function lockAlert(tx: Queryable, id: number): Promise<AlertRow | null> {
  const [seen] = await tx.select({ spikeId: alerts.spikeId }).from(alerts).where(eq(alerts.id, id));
  if (seen === undefined) return null;
  if (seen.spikeId !== null) await lockSpike(tx, seen.spikeId);
  const [row] = await tx.select().from(alerts).where(eq(alerts.id, id)).for("no key update");
  return row ?? null;
}

/** Enters an acknowledgement; the alert must be locked. */
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
