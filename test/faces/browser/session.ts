import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { openPeople } from "#app/open-people.ts";
import type { SignIn } from "#config/file/sign-in-entry.ts";
import { alerts } from "#db/schema/alerts.ts";
import type { People } from "#faces/http/keys/sessions.ts";
import { startIssuer } from "#test/support/issuer.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { startProxy } from "../cli/proxy.ts";
import { call, makeKey, startArchive } from "../http/start-archive.ts";
import { settle } from "./open-browser.ts";
import type { BrowserWorld } from "./open-world.ts";

const ROOT = path.join(import.meta.dirname, "..", "..", "..");

/** The tests of a session, each on a service of its own. */
export function testSession(openWorld: () => BrowserWorld): void {
  /** A page that was signed in with an admin key through its form. */
  async function openSignedIn(through = async (url: string) => url) {
    const database = await createMigratedDatabase();
    onTestFinished(() => database.drop());
    const consoleFolder = path.join(ROOT, "dist", "console");
    const url = await through((await startArchive(database.url, { consoleFolder })).url);
    const { key } = await makeKey(database, "admin");
    const context = await openWorld().browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(url);
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await showOverview(page);
    return { database, url, context, page };
  }

  const showOverview = (page: Page) => page.getByRole("heading", { name: "Attention" }).waitFor();

  test("S11: a page on another port of the host receives the session's cookie, and the cookie opens nothing", async () => {
    const { url, context, page } = await openSignedIn();
    let stolen = "";
    const thief = createServer(({ headers }, answer) => {
      stolen = headers.cookie ?? stolen;
      answer.writeHead(200, { "content-type": "text/html" }).end("<title>a local tool</title>");
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void thief.close());
    await once(thief, "listening");
    await page.goto(`http://127.0.0.1:${(thief.address() as AddressInfo).port}/`);
    expect(stolen).toContain("longwatch_session=");

    const forged = { cookie: stolen, origin: url, "sec-fetch-site": "same-origin" };
    const create = { method: "POST", body: JSON.stringify({ name: "lasting", role: "admin" }) };
    const statuses = [
      (await call(url, "/session", undefined, { headers: forged })).status,
      (await call(url, "/api/v1/keys", undefined, { ...create, headers: forged })).status,
      (await call(url, "/api/v1/alerts/stream", undefined, { headers: forged })).status,
    ];
    expect(statuses).toEqual([401, 401, 401]);
    // The person is still signed in, in this tab and in the next one.
    const next = await context.newPage();
    await next.goto(url);
    await showOverview(next);
  });

  test("a person signs in at an issuer of another site and comes back to the page that was asked for", async () => {
    const database = await createMigratedDatabase();
    onTestFinished(() => database.drop());
    // The address of the service is known once it listens.
    const people = {} as People;
    const consoleFolder = path.join(ROOT, "dist", "console");
    const desk = { role: "reader", zoneIds: null, isMasked: false } as const;
    const current: { settings: SignIn | null } = { settings: null };
    const signIn = () => current.settings;
    const { url } = await startArchive(database.url, { consoleFolder, people, signIn });
    const issuer = await startIssuer({ host: "localhost", redirectUri: `${url}/sign-in` });
    onTestFinished(() => issuer.close());
    current.settings = issuer.settings({ desk });
    Object.assign(people, openPeople({ settings: signIn, publicUrl: url }));
    const context = await openWorld().browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(`${url}/silences?state=expired`);
    await page.getByRole("button", { name: "Sign in with Example" }).click();
    await page.getByLabel("Signed in as ada@example.org").waitFor();
    expect(page.url()).toBe(`${url}/silences?state=expired`);

    await page.getByLabel("Signed in as ada@example.org").click();
    await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
    // The issuer asks on a page of its own.
    await page.getByRole("button", { name: "Yes, sign out" }).click();
    await page.getByRole("button", { name: "Sign in with Example" }).waitFor();
    expect(page.url()).toBe(`${url}/sign-in`);
    issuer.account = { sub: "eve", groups: ["sales"] };
    await page.getByRole("button", { name: "Sign in with Example" }).click();
    await page.getByText('eve has no role here: the claim groups has "sales"').waitFor();
    expect(page.url()).toBe(`${url}/sign-in`);
  });

  test("a page says within seconds that the service is down, and a page opened meanwhile is there when it answers", async () => {
    const answers = new Set<ServerResponse>();
    let isDown = false;
    const answer = (response: ServerResponse) => {
      answers.add(response);
      if (isDown) response.destroy();
      return isDown;
    };
    const { page } = await openSignedIn((url) => startProxy(url, { answer }));
    await settle(page);
    await page.getByRole("button", { name: "live" }).waitFor();
    isDown = true;
    for (const one of answers) one.destroy();
    await page.getByText("The service does not answer").first().waitFor({ timeout: 6_000 });
    await page.getByRole("button", { name: "offline" }).waitFor();
    expect(await page.getByRole("button", { name: "live" }).count()).toBe(0);
    expect(await page.locator("body").innerText()).not.toMatch(/\b(?:now|quiet)\b/);

    await page.getByRole("link", { name: "Silences" }).first().click();
    await page.keyboard.press("Control+k");
    await page.getByText("A part of this page was not loaded").first().waitFor();
    isDown = false;
    await page.getByText("Nothing is muted").waitFor({ timeout: 15_000 });
    await page.getByRole("button", { name: "live" }).waitFor();
  });

  test("an alert that fires reaches an open page through its stream, while the page's timers stand still", async () => {
    const { database, url, context } = await openSignedIn();
    const page = await context.newPage();
    await page.clock.install();
    const stream = page.waitForResponse((response) => response.url().endsWith("/api/v1/alerts/stream"));
    await page.goto(`${url}/alerts`);
    expect((await stream).status()).toBe(200);
    await settle(page);
    await page.clock.pauseAt(Date.now() + 1_000);
    await database.db.insert(alerts).values({
      firedAt: new Date(),
      zoneId: 101,
      ruleId: "942100",
      kind: "spike",
      fingerprint: "streamed",
      transitions: [{ transition: 1, at: Date.now(), reason: "first", state: "firing", severity: "error" }],
      details: {},
    });
    // The page waits a moment for further transitions. Its next poll is a minute away.
    for (let turn = 0; turn < 1_000 && (await page.getByText(/alert \d+$/).count()) === 0; turn++)
      await page.clock.runFor(30);
    await page.getByText("942100").first().waitFor();
  });
}
