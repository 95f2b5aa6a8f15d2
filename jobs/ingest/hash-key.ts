import { randomBytes } from "node:crypto";
import type { Database } from "#db/client.ts";
import { readServerSecret } from "#db/service/server-facts.ts";

const keys = new WeakMap<Database, string>();

/**
 * Returns the key of the hashes of matched texts. The first process that asks for the key makes it; all replicas have the same
 * one. The key stays in memory.
 */
export async function readHashKey(database: Database): Promise<string> {
  const known = keys.get(database);
  if (known !== undefined) return known;
  const key = (await readServerSecret(database.db, "matched-text", randomBytes(32))).toString("hex");
  keys.set(database, key);
  return key;
}
