import type { Browser, Cookie } from "playwright-core";
import type { Database } from "../../db/client.ts";
import { issueKey } from "../../src/http/keys/issue-key.ts";
import type { Role } from "../../src/http/keys/roles.ts";

/** Signs in with a new key of this role, for every zone. */
export async function signInAs(
  browser: Browser,
  origin: string,
  database: Database,
  role: Role,
): Promise<Cookie[]> {
  const wanted = { name: `test ${role}`, role, zoneIds: null, isMasked: false, expiresInMs: null };
  const { key } = await issueKey(database, wanted, "test");
  return signIn(browser, origin, key.reveal());
}

/** Signs in with a key and returns the session's cookies. @throws if the service refuses the key. */
export async function signIn(browser: Browser, origin: string, key: string): Promise<Cookie[]> {
  const context = await browser.newContext({ baseURL: origin });
  const answer = await context.request.post("/session", { data: { key }, headers: { origin } });
  if (!answer.ok()) throw new Error(`${origin} refused the key: ${answer.status()} ${await answer.text()}`);
  const { cookies } = await context.storageState();
  await context.close();
  return cookies;
}
