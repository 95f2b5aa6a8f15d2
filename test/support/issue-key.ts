import type { Database } from "#db/client.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { WantedKey } from "#people/keys/issue-key.ts";
import * as keys from "#people/keys/issue-key.ts";

/** Creates a key as the operation does, with its audit entry. */
export function issueKey(database: Database, wanted: WantedKey, actor: string) {
  return inTransaction(database, async ({ tx }) => {
    const issued = await keys.issueKey(tx, wanted);
    await writeAuditEntry(tx, { actor, ...issued.audit });
    return issued;
  });
}

/** Revokes a key as the operation does, with its audit entries. */
export function withdrawKey(database: Database, keyId: string, actor: string) {
  return inTransaction(database, async ({ tx }) => {
    const withdrawn = await keys.withdrawKey(tx, keyId);
    if (typeof withdrawn === "string") return withdrawn;
    for (const note of withdrawn.audit) await writeAuditEntry(tx, { actor, ...note });
    return withdrawn.ended;
  });
}
