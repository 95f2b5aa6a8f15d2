import type { Queryable } from "../client.ts";
import { auditEntries } from "../schema/audit-entries.ts";

/**
 * An actor, an action and its subject. Written in the transaction of the change itself, so that neither exists
 * without the other.
 */
export type AuditEntry = Pick<typeof auditEntries.$inferInsert, "actor" | "action" | "subject" | "details">;

export async function writeAuditEntry(tx: Queryable, entry: AuditEntry): Promise<void> {
  await tx.insert(auditEntries).values(entry);
}
