import type { Database } from "#db/client.ts";
import { type Replayed, replayDeliveries as replay } from "#db/delivery/deliveries.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";

/** Replays dead deliveries and, if there were any, enters that into the audit trail in the same transaction. */
export function replayDeliveries(
  database: Database,
  which: Parameters<typeof replay>[1],
  actor: string,
): Promise<Replayed> {
  return inTransaction(database, async ({ tx }) => {
    const replayed = await replay(tx, which);
    const subject = "id" in which ? `delivery ${which.id}` : `channel ${which.channel}`;
    const entry = { actor, action: "delivery.replayed", subject, details: { ...replayed } };
    if (replayed.replayed > 0) await writeAuditEntry(tx, entry);
    return replayed;
  });
}
