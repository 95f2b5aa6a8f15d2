import { writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, expect, test } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { exportCommand } from "#faces/cli/export/export.ts";
import { searchCommand } from "#faces/cli/search/search.ts";
import { tailCommand } from "#faces/cli/tail/tail.ts";
import { HOUR_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { NOW } from "#test/alerts/support.ts";
import { makeEvent, storeAll } from "#test/detection/trend-support.ts";
import { makeTemporaryFolder } from "#test/support/temporary-folder.ts";
import { runStoreCommand } from "../../cli/run-store-command.ts";
import { SERVICE } from "../default-service.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const [first] = SERVICE.accounts;
if (first === undefined) throw new Error("no account");

const startWith = (shop: readonly number[]) => {
  const service = {
    ...SERVICE,
    accounts: [
      { ...first, zoneIds: [101] },
      { ...first, name: "shop", zoneIds: shop },
    ],
  };
  return world.start({ clock: () => NOW, service });
};

interface Listed {
  readonly items: readonly { zoneId: number }[];
}
const HOURS = `/api/v1/coverage?from=${NOW - 3 * HOUR_MS}&to=${NOW}`;
const zonesOf = ({ items }: Listed) => [...new Set(items.map(({ zoneId }) => zoneId))];

beforeEach(async () => {
  const { db, pool } = world.database();
  await pool.query("truncate coverage_windows, waf_events, api_keys cascade");
  const startsAt = new Date(NOW - (NOW % HOUR_MS) - 2 * HOUR_MS);
  const rows = [101, 102].map((zoneId) => ({ zoneId, startsAt, state: "open" as const, storedCount: 0 }));
  await db.insert(coverageWindows).values(rows);
});

test("a key for an account sees a zone that the account gets later, and no zone that it has lost", async () => {
  const before = await startWith([102]);
  const after = await startWith([101]);
  const admin = await world.key("admin");
  const body = JSON.stringify({ name: "agency", role: "reader", accounts: ["shop"] });
  const made = await ask<{ key: string }>(before.url, "/api/v1/keys", admin, {
    method: "POST",
    body,
    status: 201,
  });
  expect(made).toMatchObject({ zones: [102], accounts: ["shop"] });
  expect(zonesOf(await ask<Listed>(before.url, HOURS, made.key))).toEqual([102]);
  await ask(before.url, `${HOURS}&zone=101`, made.key, { status: 403 });
  expect(zonesOf(await ask<Listed>(after.url, HOURS, made.key))).toEqual([101]);
  await ask(after.url, `${HOURS}&zone=102`, made.key, { status: 403 });
  const { items } = await ask<{ items: { zones: number[] }[] }>(after.url, "/api/v1/keys", admin);
  expect(items[0]?.zones).toEqual([101]);
});

test("account names the zones of a list in the place of zone, within the rights of the key", async () => {
  const { url } = await startWith([102]);
  const key = await world.key("reader");
  expect(zonesOf(await ask<Listed>(url, `${HOURS}&account=shop`, key))).toEqual([102]);
  expect(zonesOf(await ask<Listed>(url, `${HOURS}&account=default`, key))).toEqual([101]);
  expect(await ask(url, `${HOURS}&account=shop&zone=101`, key, { status: 400 })).toMatchObject({
    mistakes: [{ field: "account", rule: "must be left out beside zone" }],
  });
  const trend = `/api/v1/trends?account=shop&from=${NOW - 3 * HOUR_MS}&to=${NOW}`;
  const { points } = await ask<{ points: { zone: number }[] }>(url, trend, key);
  expect([...new Set(points.map(({ zone }) => zone))]).toEqual([102]);
  const own = await world.key("reader", { zoneIds: [101] });
  expect(await ask(url, `${HOURS}&account=shop`, own, { status: 422 })).toMatchObject({
    mistakes: [{ field: "account", rule: "must be an account of the service (default)" }],
  });
});

/** The command ends once it has printed the text. Events of the zones before are printed earlier. */
function tailUntil(text: string): typeof tailCommand {
  return (readConfig, io) => {
    if (io === undefined) throw new Error("no streams");
    const stop = new AbortController();
    const write = io.stdout.write.bind(io.stdout);
    io.stdout.write = ((chunk: string) => {
      if (chunk.includes(text)) stop.abort();
      return write(chunk);
    }) as typeof write;
    return tailCommand(readConfig, { ...io, interrupted: stop.signal });
  };
}

test("--account chooses the zones of coverage, search, export and tail, here and of a service elsewhere", async () => {
  await ensurePartitions(world.database(), [toDay(NOW - HOUR_MS)]);
  const [ofShop, other] = [102, 101].map((zoneId) =>
    makeEvent({ occurredAt: NOW - HOUR_MS, logId: `of-${zoneId}` }),
  );
  if (ofShop === undefined || other === undefined) throw new Error("no event");
  await storeAll(world.database(), [ofShop], { zoneId: 102 });
  await storeAll(world.database(), [other], { zoneId: 101 });
  const folder = makeTemporaryFolder("accounts");
  const file = path.join(folder, "longwatch.yaml");
  const address = "https://platform.example";
  writeFileSync(file, JSON.stringify({ accounts: { shop: { key_env: "SHOP_KEY", address, zones: [102] } } }));
  const here = {
    DATABASE_URL: world.database().url,
    LONGWATCH_CONFIG: file,
    LONGWATCH_DATA_DIR: folder,
    SHOP_KEY: "canary-key-of-the-shop",
  };
  const { url } = await startWith([102]);
  const there = { LONGWATCH_URL: url, LONGWATCH_KEY: await world.key("exporter") };
  const coverageCommand = await loadSubject("coverage");
  for (const environment of [here, there]) {
    const run = (create: Parameters<typeof runStoreCommand>[0], ...args: string[]) =>
      runStoreCommand(create, environment, args, { now: NOW });
    const hours = await run(coverageCommand, "--account", "shop", "--from", "-3h", "--to", "now", "--json");
    expect([hours.err, zonesOf(JSON.parse(hours.out) as Listed)]).toEqual(["", [102]]);
    const found = await run(searchCommand, "--account", "shop", "--from", "-2h", "--json");
    expect(found.out).toContain("of-102");
    expect(found.out).not.toContain("of-101");
    const exported = await run(exportCommand, "--account", "shop", "--from", "-2h");
    expect(exported.out).toContain("of-102");
    expect(exported.out).not.toContain("of-101");
    const tailed = await run(tailUntil("of-102"), "--account", "shop", "--since", "-2h", "--json");
    expect([tailed.err, tailed.out.trimEnd().split("\n").length]).toEqual(["", 1]);
    const unknown = await run(searchCommand, "--account", "blog", "--from", "-2h");
    expect(unknown.err).toMatch(/--account "blog" must be an account of the service \(.*shop\)/);
    const both = await run(searchCommand, "--account", "shop", "--zone", "101", "--from", "-2h");
    expect(both.err).toContain('--account "shop" must be left out beside --zone');
  }
});
