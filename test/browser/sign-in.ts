import type { Browser, Cookie } from "playwright-core";

/** Signs in with a key and returns the session's cookies. @throws if the service refuses the key. */
export async function signIn(browser: Browser, origin: string, key: string): Promise<Cookie[]> {
  const context = await browser.newContext({ baseURL: origin });
  const answer = await context.request.post("/session", { data: { key }, headers: { origin } });
  if (!answer.ok()) throw new Error(`${origin} refused the key: ${answer.status()} ${await answer.text()}`);
  const { cookies } = await context.storageState();
  await context.close();
  return cookies;
}
