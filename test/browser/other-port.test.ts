import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { call, makeKey, startArchive } from "../http/start-archive.ts";
import { CHROMIUM, openBrowser } from "./open-browser.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");

test.skipIf(CHROMIUM === null)(
  "S11: a page on another port of the host receives the session's cookie in Chromium, and the cookie opens nothing",
  async () => {
    const built = spawnSync(process.execPath, [path.join(ROOT, "src", "build-console.mjs")], { cwd: ROOT });
    expect(built.status).toBe(0);
    const database = await createMigratedDatabase();
    onTestFinished(() => database.drop());
    const { url } = await startArchive(database.url, {
      consoleFolder: path.join(ROOT, "dist", "console"),
    });
    const { key } = await makeKey(database, "admin");
    let stolen = "";
    const thief = createServer(({ headers }, answer) => {
      stolen = headers.cookie ?? stolen;
      answer.writeHead(200, { "content-type": "text/html" }).end("<title>a local tool</title>");
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void thief.close());
    const browser = await openBrowser();
    onTestFinished(() => browser.close());

    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(url);
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Attention" }).waitFor();
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
    const stream = next.waitForResponse((response) => response.url().endsWith("/api/v1/alerts/stream"));
    await next.goto(url);
    expect((await stream).status()).toBe(200);
    await next.getByRole("heading", { name: "Attention" }).waitFor();
  },
);
