import { eq } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { serverSecrets } from "../schema/server-secrets.ts";

/**
 * Returns the secret of this name. Stores `candidate` as the secret if there is none yet. Concurrent callers all get
 * the same secret.
 */
export async function readServerSecret(db: Queryable, name: string, candidate: Buffer): Promise<Buffer> {
  const read = async () => {
    const [row] = await db.select().from(serverSecrets).where(eq(serverSecrets.name, name));
    return row?.secret;
  };
  // A command reads a secret each time it runs, so the usual case writes nothing.
  const known = await read();
  if (known !== undefined) return known;
  await db.insert(serverSecrets).values({ name, secret: candidate }).onConflictDoNothing();
  const stored = await read();
  if (stored === undefined) throw new Error(`the secret ${name} was deleted while it was read`);
  return stored;
}
