import type { Database } from "../../../db/client.ts";
import { insertApiKey, type ListedApiKey, type NewApiKey, revokeApiKey } from "../../../db/keys/api-keys.ts";
import { writeAuditEntry } from "../../../db/keys/audit-entries.ts";
import { inTransaction } from "../../../db/postgres/transaction.ts";
import { maskText } from "../../archive/mask/mask-text.ts";
import { createSecret, type Secret } from "../../lib/secret.ts";
import { createAccessKey } from "../../model/access-key.ts";
import type { WantedKey } from "./wanted-key.ts";

/** Creates a key. The key itself is stored nowhere and is shown once. */
export async function issueKey(
  database: Database,
  wanted: WantedKey,
  actor: string,
): Promise<{ readonly key: Secret; readonly listed: ListedApiKey }> {
  const { keyId, key, hash } = createAccessKey();
  const listed = await inTransaction(database, async ({ tx }) => {
    const inserted = await insertApiKey(tx, toRow(wanted, { keyId, hash }));
    const { role, zoneIds, isMasked } = wanted;
    // The entry outlives every erasure.
    const name = maskText(wanted.name);
    const details = { name, role, zoneIds, isMasked, expiresAt: inserted.expiresAt?.toISOString() ?? null };
    await writeAuditEntry(tx, { actor, action: "key.created", subject: `key ${keyId}`, details });
    return inserted;
  });
  return { key: createSecret(key), listed };
}

/** Revokes a key, from the next request on, on every replica. */
export function withdrawKey(
  database: Database,
  keyId: string,
  actor: string,
): Promise<"revoked" | "over" | "unknown"> {
  return inTransaction(database, async ({ tx }) => {
    const result = await revokeApiKey(tx, keyId);
    const entry = { actor, action: "key.revoked", subject: `key ${keyId}`, details: {} };
    if (result === "revoked") await writeAuditEntry(tx, entry);
    return result;
  });
}

export function toRow(wanted: WantedKey, { keyId, hash }: { keyId: string; hash: Buffer }): NewApiKey {
  const { name, role, zoneIds, isMasked, expiresInMs } = wanted;
  const zones = zoneIds === null ? null : [...zoneIds];
  return { keyId, keyHash: hash, name, roles: [role], zoneIds: zones, isMasked, expiresInMs };
}
