import { eq } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { serverSecrets } from "../schema/server-secrets.ts";

/**
 * Returns the secret of this name. Stores `candidate` as the secret if there is none yet. Concurrent callers all get
 * the same secret.
 */
export async function readServerSecret(db: Queryable, name: string, candidate: Buffer): Promise<Buffer> {
  await db.insert(serverSecrets).values({ name, secret: candidate }).onConflictDoNothing();
  const [row] = await db.select().from(serverSecrets).where(eq(serverSecrets.name, name));
  if (row === undefined) throw new Error(`the secret ${name} was deleted while it was read`);
  return row.secret;
}
