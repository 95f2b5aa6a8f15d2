import { eq } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { serverSecrets } from "../schema/server-secrets.ts";

/** The secret of this name; `candidate` becomes it where there is none yet. Of many at once all get the same. */
export async function readServerSecret(db: Queryable, name: string, candidate: Buffer): Promise<Buffer> {
  await db.insert(serverSecrets).values({ name, secret: candidate }).onConflictDoNothing();
  const [row] = await db.select().from(serverSecrets).where(eq(serverSecrets.name, name));
  if (row === undefined) throw new Error(`the secret ${name} was deleted while it was read`);
  return row.secret;
}
