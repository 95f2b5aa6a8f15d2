import type { Database } from "#db/client.ts";
import { insertApiKey, type ListedApiKey, type NewApiKey, revokeApiKey } from "#db/keys/api-keys.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { createAccessKey } from "#model/access-key.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";
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
    const { role, zoneIds, isMasked, parentKeyId = null } = wanted;
    // The entry outlives every erasure.
    const name = maskText(wanted.name);
    const expiresAt = inserted.expiresAt?.toISOString() ?? null;
    const ends = parentKeyId === null ? {} : { endsWith: `key ${parentKeyId}` };
    const details = { name, role, zoneIds, isMasked, expiresAt, ...ends };
    await writeAuditEntry(tx, { actor, action: "key.created", subject: `key ${keyId}`, details });
    return inserted;
  });
  return { key: createSecret(key), listed };
}

/**
 * Revokes a key and the keys that end with it, from the next request on, on every replica. Returns the ids of those keys;
 * `over` if the key was revoked already.
 */
export function withdrawKey(
  database: Database,
  keyId: string,
  actor: string,
): Promise<readonly string[] | "over" | "unknown"> {
  return inTransaction(database, async ({ tx }) => {
    const result = await revokeApiKey(tx, keyId);
    if (typeof result === "string") return result;
    const action = "key.revoked";
    await writeAuditEntry(tx, { actor, action, subject: `key ${keyId}`, details: {} });
    const details = { endedWith: `key ${keyId}` };
    for (const other of result)
      await writeAuditEntry(tx, { actor, action, subject: `key ${other}`, details });
    return result;
  });
}

export function toRow(wanted: WantedKey, { keyId, hash }: { keyId: string; hash: Buffer }): NewApiKey {
  const { name, role, zoneIds, isMasked, expiresInMs, parentKeyId = null } = wanted;
  const zones = zoneIds === null ? null : [...zoneIds];
  return { keyId, keyHash: hash, name, roles: [role], zoneIds: zones, isMasked, expiresInMs, parentKeyId };
}
