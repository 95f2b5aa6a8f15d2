import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { createDatabase } from "#db/client.ts";
import { migrate } from "#db/migrate.ts";
import { acquireLease, renewLease } from "#db/postgres/leases.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { openEmulator } from "../emulator/support.ts";
import { findOlderServer } from "../support/older-postgres.ts";
import { soakTest } from "../support/sample.ts";
import { type StandbyPair, startStandbyPair } from "../support/standby-pair.ts";
import { findBreaches, findMissing, readShown } from "./invariants.ts";
import { createReplica, ZONE } from "./replica.ts";

const server = findOlderServer();
const skipped = typeof server === "string" ? ` (skipped: ${server})` : "";
const BUSY_MS = 20_000;
const ttlMs = 60_000;
let pair: StandbyPair;

beforeAll(async () => {
  if (typeof server !== "string") pair = await startStandbyPair(server);
});

afterAll(async () => {
  if (typeof server !== "string") await pair.stop();
});

/** Opens a database of its own on the pair. */
async function openWorld(name: string) {
  const emulator = await openEmulator({
    zones: [ZONE],
    historyHours: 2,
    eventsPerSecond: 0.03,
    pageSize: 40,
  });
  await pair.query("postgres", `create database ${name}`);
  const databaseUrl = parseConfig({ DATABASE_URL: pair.url(name) }).databaseUrl?.reveal() ?? "";
  await migrate({ url: databaseUrl });
  const sent: AlertMessage[] = [];
  const replica = createReplica({
    databaseUrl,
    platformUrl: emulator.url,
    accessKey: emulator.accessKey,
    clock: () => emulator.now(),
    onMessage: (message) => void sent.push(message),
  });
  onTestFinished(() => replica.close());
  return {
    databaseUrl,
    emulator,
    replica,
    sent,
    /** Runs every job until it ends well. The first attempts after a failover meet connections that are dead. */
    runAll: async () => {
      for (const job of replica.jobNames) {
        const run = () => replica.run(job).then(() => null, String);
        await expect.poll(run, { timeout: BUSY_MS }).toBe(null);
      }
    },
    countEvents: async () => {
      const [row] = await pair.query<{ n: number }>(name, "select count(*)::int as n from waf_events");
      return row?.n ?? 0;
    },
    findFaults: async () => {
      const shown = await readShown(emulator.url, ZONE);
      const missing = await findMissing(replica.database, ZONE, shown);
      return [...(await findBreaches(replica.database, ZONE, async () => shown)), ...missing];
    },
  };
}

test.skipIf(skipped !== "")(
  `F39: a standby that is promoted without the newest commits gets every event again, no alert under another key, gives out no number twice, and a former primary that is back is not used${skipped}`,
  async () => {
    await pair.follow("asynchronously");
    const { databaseUrl, emulator, replica, sent, runAll, findFaults } = await openWorld("lagging");
    const { db } = replica.database;
    await runAll();
    const keptFence = (await acquireLease(db, { name: "kept", holder: "a", ttlMs })) ?? 0;
    await pair.lag();
    emulator.advance(20 * 60_000);
    emulator.addAttack("zone=101,rule=942100,start=-7m,duration=5m,rate=2/s");
    await runAll();
    const lostFence = (await acquireLease(db, { name: "lost", holder: "a", ttlMs })) ?? 0;
    const running = Promise.allSettled(replica.jobNames.map((job) => replica.run(job)));
    await pair.failOver();
    await running;

    expect(await pair.query("lagging", "select from leases where name = 'lost'")).toEqual([]);
    await runAll();
    emulator.advance(2 * 60_000);
    await runAll();
    expect(await findFaults()).toEqual([]);
    const [first, second, ...more] = sent.filter(({ ruleId }) => ruleId === "942100");
    expect(more).toEqual([]);
    expect(second?.dedupeKey).toBe(first?.dedupeKey);
    expect(second?.alertId).toBeGreaterThan(first?.alertId ?? Number.NaN);
    expect(await renewLease(db, { name: "kept", fence: keptFence, ttlMs })).toBe(false);
    expect(await acquireLease(db, { name: "kept", holder: "b", ttlMs })).toBeGreaterThan(keptFence);
    expect(await acquireLease(db, { name: "lost", holder: "b", ttlMs })).toBeGreaterThan(lostFence);

    await pair.revive();
    const fresh = createDatabase({
      url: `${databaseUrl}&application_name=fresh`,
      max: 1,
      applicationName: "fresh",
      onError: () => undefined,
    });
    onTestFinished(() => fresh.close());
    const { rows } = await fresh.pool.query(
      "select count(*)::int as n from pg_stat_activity where application_name = 'longwatch replica'",
    );
    expect(rows[0].n).toBeGreaterThan(0);
  },
);

(skipped === "" ? soakTest : test.skip)(
  `F39: a standby that is promoted while it followed synchronously has every commit${skipped}`,
  async () => {
    await pair.follow("synchronously");
    const { emulator, replica, runAll, countEvents, findFaults } = await openWorld("exact");
    await runAll();
    emulator.advance(20 * 60_000);
    const before = await countEvents();
    const running = Promise.allSettled(replica.jobNames.map((job) => replica.run(job)));
    await expect.poll(countEvents, { timeout: BUSY_MS }).toBeGreaterThan(before);
    const stored = await countEvents();
    await pair.failOver();
    await running;

    expect(await countEvents()).toBeGreaterThanOrEqual(stored);
    await runAll();
    expect(await findFaults()).toEqual([]);
  },
);
