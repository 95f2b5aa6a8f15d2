import { writeFileSync } from "node:fs";
import path from "node:path";
import pino from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createApp, type RunningApp } from "#app/app.ts";
import { parseServiceConfig } from "#config/config.ts";
import { createEmulator, type Emulator } from "#emulator/emulator.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const OWN = 101;
const SHOP = [201, 202] as const;
const KEYS = ["canary-key-of-the-first", "canary-key-of-the-shop", "canary-new-key-of-the-shop"] as const;
const WAIT = { timeout: 60_000, interval: 100 };
const SECOND = "* * * * * *";
const lines: string[] = [];
const answers: string[] = [];
let database: MigratedDatabase;
let first: Emulator;
let shop: Emulator;
let app: RunningApp;
let stop: () => Promise<void>;
let keyFile: string;

/** A service of two accounts at two platforms, each with its own key. */
beforeAll(async () => {
  const folder = makeTemporaryFolder("accounts");
  keyFile = path.join(folder, "shop-key");
  const traffic = { historyHours: 2, eventsPerSecond: 0.2, lateShare: 0 };
  first = await createEmulator({ ...traffic, zones: [OWN], accessKey: KEYS[0] });
  shop = await createEmulator({ ...traffic, zones: SHOP, accessKey: KEYS[1] });
  database = await createMigratedDatabase();
  writeFileSync(keyFile, `${KEYS[1]}\n`);
  const file = path.join(folder, "longwatch.yaml");
  const account = { key_file: keyFile, address: shop.url, zones: SHOP, requests_per_second: 50 };
  const schedule = { "poll-events": SECOND, "report-service": SECOND };
  writeFileSync(file, JSON.stringify({ accounts: { shop: account }, schedule }));
  const config = parseServiceConfig({
    DATABASE_URL: database.url,
    EDGE_API_URL: first.url,
    EDGE_API_KEY: KEYS[0],
    EDGE_SHIELD_ZONES: `${OWN}`,
    EDGE_REQUESTS_PER_SECOND: "50",
    LONGWATCH_DATA_DIR: folder,
    LONGWATCH_CONFIG: file,
    LONGWATCH_PORT: "0",
    LONGWATCH_PSEUDONYM_KEY: "pseudonym-key-of-the-test-of-accounts",
  });
  const terminal = {
    write: (text: string, done: (error?: Error | null) => void) => (lines.push(text), done(), true),
  };
  const service = createApp({
    config,
    log: pino({ level: "debug" }, { write: (line) => void lines.push(line) }),
    terminal,
    onStep: (step) => void lines.push(step),
  });
  stop = () => service.stop();
  app = await service.start();
});

afterAll(async () => {
  await stop();
  await Promise.all([first.close(), shop.close(), database.drop()]);
});

async function get(address: string): Promise<string> {
  const response = await fetch(`${app.httpUrl}${address}`, {
    headers: { AccessKey: app.adminKey?.reveal() ?? "" },
  });
  const text = await response.text();
  answers.push(text);
  return text;
}

async function countEvents(zoneId: number): Promise<number> {
  const { rows } = await database.pool.query("select count(*)::int as n from waf_events where zone_id = $1", [
    zoneId,
  ]);
  return rows[0].n;
}

async function readSearched(zoneId: number): Promise<number> {
  const { rows } = await database.pool.query(
    "select max(searched_through) as at from coverage_windows where zone_id = $1",
    [zoneId],
  );
  return rows[0].at?.getTime() ?? 0;
}

/** Lets the platform have refused the key for longer than a change of the key takes. */
const ageRefusals = () =>
  database.pool.query(
    "update platform_health set refused_since = refused_since - interval '10 minutes', answered_at = answered_at - interval '10 minutes' where zone_id = any ($1)",
    [SHOP],
  );

test("a key that is refused stops the zones of its account only, and no key is in a log or an answer", async () => {
  await vi.waitFor(async () => {
    for (const zoneId of [OWN, ...SHOP]) expect(await countEvents(zoneId)).toBeGreaterThan(10);
  }, WAIT);
  const { rows: budgets } = await database.pool.query("select name from request_budgets order by name");
  expect(budgets.map(({ name }) => name)).toEqual(["edge", "edge:shop"]);

  shop.addFault({ kind: "unauthorized" });
  await vi.waitFor(async () => {
    const { rows } = await database.pool.query(
      "select zone_id from platform_health where refused_since > answered_at order by zone_id",
    );
    expect(rows.map((row) => row.zone_id)).toEqual([...SHOP]);
  }, WAIT);
  await ageRefusals();
  const before = await readSearched(OWN);
  await vi.waitFor(async () => {
    const { rows } = await database.pool.query(
      "select zone_id, details from alerts where state = 'firing' and kind = 'self'",
    );
    expect(rows).toMatchObject([
      {
        zone_id: SHOP[0],
        details: {
          message: {
            headline:
              "The platform refuses the access key of account shop (EDGE_UNAUTHORIZED). No events of zones 201, 202 are copied",
            zoneLabels: { account: "shop" },
          },
        },
      },
    ]);
  }, WAIT);
  await vi.waitFor(async () => expect(await readSearched(OWN)).toBeGreaterThan(before + 2_000), WAIT);
  await vi.waitFor(async () => expect(Date.now() - (await readSearched(OWN))).toBeLessThan(10_000), WAIT);

  const { items } = JSON.parse(await get("/api/v1/accounts"));
  expect(items).toMatchObject([
    { name: "default", host: new URL(first.url).host, zones: [OWN], state: "ok", refusedSince: null },
    { name: "shop", host: new URL(shop.url).host, zones: SHOP, state: "refused", ratePerSecond: 50 },
  ]);
  expect(await get("/api/v1/overview")).toContain("refuses the access key of account shop");
  const zones = JSON.parse(await get("/api/v1/zones")).items;
  expect(zones.map(({ id, account }: { id: number; account: string }) => [id, account])).toEqual([
    [OWN, "default"],
    [SHOP[0], "shop"],
    [SHOP[1], "shop"],
  ]);
  const metrics = await get("/metrics");
  for (const line of [
    'longwatch_edge_key_refused{account="default"} 0',
    'longwatch_edge_key_refused{account="shop"} 1',
    'longwatch_conditions{condition="credentials"} 1',
  ])
    expect(metrics).toContain(line);
  expect(metrics).toMatch(/longwatch_edge_requests_total\{[^}]*outcome="EDGE_UNAUTHORIZED",account="shop"\}/);
  expect(metrics).not.toMatch(
    /longwatch_edge_requests_total\{[^}]*outcome="EDGE_UNAUTHORIZED",account="default"\}/,
  );

  writeFileSync(keyFile, `${KEYS[2]}\n`);
  await vi.waitFor(() => {
    const read = lines.filter((line) => line.includes("access key read again"));
    expect(read.map((line) => JSON.parse(line).account)).toEqual(["shop"]);
  }, WAIT);
  // The emulator does not know the new key, so the file has to name the first one again.
  shop.clearFaults();
  writeFileSync(keyFile, `${KEYS[1]}\n`);
  await vi.waitFor(async () => {
    const { rows } = await database.pool.query("select state from alerts where kind = 'self'");
    expect(rows).toEqual([{ state: "resolved" }]);
  }, WAIT);
  for (const address of ["/api/v1/settings", "/api/v1/accounts", "/api/v1/audit", "/metrics"])
    await get(address);
  const shown = [...lines, ...answers].join("\n");
  expect(shown).toContain("account shop");
  for (const key of KEYS) expect(shown).not.toContain(key);
});

test("a key for an account sees the account's zones only", async () => {
  const create = async (accounts: string[]) => {
    const response = await fetch(`${app.httpUrl}/api/v1/keys`, {
      method: "POST",
      headers: { AccessKey: app.adminKey?.reveal() ?? "", "content-type": "application/json" },
      body: JSON.stringify({ name: "agency", role: "reader", accounts }),
    });
    return { status: response.status, answer: JSON.parse(await response.text()) };
  };
  const { answer } = await create(["shop"]);
  expect(answer.zones).toEqual(SHOP);
  const seen = await fetch(`${app.httpUrl}/api/v1/accounts`, { headers: { AccessKey: answer.key } });
  expect(JSON.parse(await seen.text()).items).toMatchObject([{ name: "shop", zones: SHOP }]);
  expect(await create(["shopp"])).toMatchObject({
    status: 422,
    answer: {
      mistakes: [
        { field: "accounts", value: '"shopp"', rule: "must be an account of the service (default, shop)" },
      ],
    },
  });
});
