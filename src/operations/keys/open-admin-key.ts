import type { Database } from "#db/client.ts";
import { insertFirstApiKey, keepApiKey } from "#db/keys/api-keys.ts";
import { writeAuditEntry } from "#db/keys/audit-trail.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { UsageError } from "#lib/errors.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { createAccessKey, hashAccessKey, readKeyId } from "#model/access-key.ts";
import { toRow } from "./issue-key.ts";
import { ADMIN_EXPIRES, readExpiry, type WantedKey } from "./wanted-key.ts";

const ACTOR = "longwatch start";

/**
 * Makes sure that there is an admin key: keeps the configured key, or creates one on the first start of a database.
 * Returns the new key, which is shown once; null if none was created.
 * @throws {UsageError} if another key has the id of the configured key
 */
export async function openAdminKey(database: Database, given: Secret | null): Promise<Secret | null> {
  if (given === null) return makeFirst(database);
  await keep(database, given.reveal());
  return null;
}

async function makeFirst(database: Database): Promise<Secret | null> {
  const { keyId, key, hash } = createAccessKey();
  const isFirst = await inTransaction(database, async ({ tx }) => {
    const made = await insertFirstApiKey(
      tx,
      toRow(adminNamed("first admin", ADMIN_EXPIRES), { keyId, hash }),
    );
    if (made) await writeAuditEntry(tx, created(keyId));
    return made;
  });
  return isFirst ? createSecret(key) : null;
}

/** Stores the configured key. A revoked key stays revoked, because a restart must not restore it. */
async function keep(database: Database, key: string): Promise<void> {
  const keyId = readKeyId(key) ?? "";
  const kept = await inTransaction(database, async ({ tx }) => {
    const row = toRow(adminNamed("admin of the configuration", "never"), { keyId, hash: hashAccessKey(key) });
    const result = await keepApiKey(tx, row);
    if (result === "added") await writeAuditEntry(tx, created(keyId));
    return result;
  });
  if (kept === "different")
    throw new UsageError([
      `LONGWATCH_ADMIN_KEY: [secret]: must have an id of its own: ${keyId} is that of another key`,
    ]);
}

function adminNamed(name: string, expires: string): WantedKey {
  const expiresInMs = readExpiry(expires, "admin") ?? null;
  return { name, role: "admin", zoneIds: null, isMasked: false, expiresInMs };
}

function created(keyId: string) {
  return { actor: ACTOR, action: "key.created", subject: `key ${keyId}`, details: { role: "admin" } };
}
