import type { Queryable } from "#db/client.ts";
import { insertApiKey, type ListedApiKey, type NewApiKey, revokeApiKey } from "#db/keys/api-keys.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { createAccessKey } from "#model/access-key.ts";
import { maskText } from "#stages/archive/mask/mask.ts";
import type { AuditNote } from "../operation.ts";
import type { WantedKey } from "./wanted-key.ts";

interface IssuedKey {
  readonly key: Secret;
  readonly listed: ListedApiKey;
  readonly audit: AuditNote;
}

/** Creates a key. The key itself is stored nowhere and is shown once. */
export async function issueKey(tx: Queryable, wanted: WantedKey): Promise<IssuedKey> {
  const { keyId, key, hash } = createAccessKey();
  const listed = await insertApiKey(tx, toRow(wanted, { keyId, hash }));
  const { role, zoneIds, isMasked, parentKeyId = null } = wanted;
  // The entry outlives every erasure.
  const name = maskText(wanted.name);
  const expiresAt = listed.expiresAt?.toISOString() ?? null;
  const ends = parentKeyId === null ? {} : { endsWith: `key ${parentKeyId}` };
  const details = { name, role, zoneIds, isMasked, expiresAt, ...ends };
  return {
    key: createSecret(key),
    listed,
    audit: { action: "key.created", subject: `key ${keyId}`, details },
  };
}

/**
 * Revokes a key and the keys that end with it, from the next request on, on every replica. `ended` has the ids of those
 * keys. `over`: the key was revoked already.
 */
export async function withdrawKey(
  tx: Queryable,
  keyId: string,
): Promise<{ readonly ended: readonly string[]; readonly audit: readonly AuditNote[] } | "over" | "unknown"> {
  const ended = await revokeApiKey(tx, keyId);
  if (typeof ended === "string") return ended;
  const revoked = (id: string, details: object) => ({ action: "key.revoked", subject: `key ${id}`, details });
  const others = ended.map((id) => revoked(id, { endedWith: `key ${keyId}` }));
  return { ended, audit: [revoked(keyId, {}), ...others] };
}

export function toRow(wanted: WantedKey, { keyId, hash }: { keyId: string; hash: Buffer }): NewApiKey {
  const { name, role, zoneIds, isMasked, expiresInMs, parentKeyId = null } = wanted;
  const zones = zoneIds === null ? null : [...zoneIds];
  return { keyId, keyHash: hash, name, roles: [role], zoneIds: zones, isMasked, expiresInMs, parentKeyId };
}
