import type { Browser, BrowserContext } from "playwright-core";
import type { Database } from "#db/client.ts";
import type { Role } from "#model/kinds.ts";
import { issueKey } from "#test/support/issue-key.ts";

/** What a browser keeps of a session: the cookie, and the page's secret. */
export interface SignedIn {
  readonly cookies: Awaited<ReturnType<BrowserContext["storageState"]>>["cookies"];
  readonly origins: { origin: string; localStorage: { name: string; value: string }[] }[];
}

/** Signs in with a new key of this role, for every zone. */
export async function signInAs(
  browser: Browser,
  origin: string,
  database: Database,
  role: Role,
): Promise<SignedIn> {
  const wanted = { name: `test ${role}`, role, zoneIds: null, isMasked: false, expiresInMs: null };
  const { key } = await issueKey(database, wanted, "test");
  return signIn(browser, origin, key.reveal());
}

/** Signs in with a key and returns the session. @throws if the service refuses the key. */
export async function signIn(browser: Browser, origin: string, key: string): Promise<SignedIn> {
  const context = await browser.newContext({ baseURL: origin });
  const answer = await context.request.post("/session", { data: { key }, headers: { origin } });
  if (!answer.ok()) throw new Error(`${origin} refused the key: ${answer.status()} ${await answer.text()}`);
  const { pageToken } = (await answer.json()) as { pageToken: string };
  const { cookies } = await context.storageState();
  await context.close();
  return {
    cookies,
    origins: [{ origin, localStorage: [{ name: "longwatch-page-token", value: pageToken }] }],
  };
}
