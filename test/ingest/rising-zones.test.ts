import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { isRising, listRisingZones, noteRising } from "#db/proof/platform-health.ts";
import { platformHealth } from "#db/schema/coverage.ts";
import { pickRising } from "#ingest/rules/plan-pass.ts";
import { createSweepJob } from "#jobs/health/sweep.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { insertSpike } from "../alerts/insert-spike.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { openEmulator } from "../emulator/support.ts";
import { openIngest, ZONE } from "./ingest-support.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const ZONES = [101, 102, 103];
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
  const zones = ZONES.map((zoneId) => ({ zoneId, watchedSince: new Date(NOW) }));
  await database.db.insert(platformHealth).values(zones);
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, searched_through)
     select zone, date_trunc('hour', $1::timestamptz), $1::timestamptz - make_interval(secs => 120 - zone)
     from unnest(array[101, 102, 103]) as zone`,
    [new Date(NOW)],
  );
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.pool.query("update platform_health set rising_until = null, refused_since = null");
  await database.pool.query("delete from spikes");
});

const rising = (zoneId: number, secondsOld: number | null, events = 10) => ({
  zoneId,
  searchedThroughMs: secondsOld === null ? null : NOW - secondsOld * 1_000,
  events,
});

test("rising zones are polled in their order, as long as the requests last", () => {
  expect(pickRising([rising(101, null), rising(102, 30), rising(103, 12)], NOW, 2)).toEqual([101, 102]);
  expect(pickRising([rising(101, 30, 4_000), rising(102, 20, 600), rising(103, 20)], NOW, 3)).toEqual([
    102, 103,
  ]);
});

test("a zone that was searched just now is not polled again", () => {
  expect(pickRising([rising(101, 4), rising(102, 9)], NOW, 10)).toEqual([102]);
});

test("a zone rises for a minute after a poll noted it, and for a quarter of an hour after a spike opened", async () => {
  const { db } = database;
  await noteRising(db, [102, 101], NOW);
  await insertSpike(db, { zoneId: 103, openedAt: new Date(NOW - 10 * MINUTE_MS) });

  const found = (await listRisingZones(db, ZONES, NOW)).map(({ zoneId, searchedThroughMs }) => [
    zoneId,
    NOW - (searchedThroughMs ?? 0),
  ]);
  expect(found).toEqual([
    [101, 19_000],
    [102, 18_000],
    [103, 17_000],
  ]);
  expect(await isRising(db, 101, NOW + 59_000)).toBe(true);
  expect((await listRisingZones(db, ZONES, NOW + MINUTE_MS)).map(({ zoneId }) => zoneId)).toEqual([103]);
  expect(await isRising(db, 103, NOW + 6 * MINUTE_MS)).toBe(false);
});

test("a zone that the platform refuses, and a zone that is not configured, are not listed", async () => {
  const { db } = database;
  await noteRising(db, ZONES, NOW);
  await db
    .update(platformHealth)
    .set({ refusedSince: new Date(NOW) })
    .where(eq(platformHealth.zoneId, 102));
  const found = await listRisingZones(db, [101, 102], NOW);
  expect(found.map(({ zoneId }) => zoneId)).toEqual([101]);
});

test("a rise that was noted lately is not written again", async () => {
  const { db } = database;
  const until = async () => {
    const [row] = await db.select().from(platformHealth).where(eq(platformHealth.zoneId, 101));
    return row?.risingUntil?.getTime();
  };
  await noteRising(db, [101], NOW);
  const first = await until();
  await noteRising(db, [101], NOW + 20_000);
  expect(await until()).toBe(first);
  await Promise.all([noteRising(db, [102, 101], NOW + 40_000), noteRising(db, [101, 102], NOW + 40_000)]);
  expect(await until()).toBe(NOW + 100_000);
});

test("the sweep polls rising zones within its requests, and none if the tick is as often", async () => {
  await noteRising(database.db, [101, 102, 103], NOW);
  const sweep = async (requests?: number) => {
    const enqueued: unknown[] = [];
    const enqueue = async (job: string, payload?: Record<string, unknown>) =>
      void (job === "poll-events" && enqueued.push(payload?.["zoneId"]));
    const polled = requests === undefined ? [] : [{ zoneIds: ZONES, risingRequests: requests }];
    const job = createSweepJob({ database, clock: () => NOW, enqueue, polled });
    await job.run({} as never, new AbortController().signal);
    return enqueued;
  };
  expect([await sweep(2), await sweep()]).toEqual([[101, 102], []]);
});

test("a rising zone is searched again after ten seconds, another one is not", async () => {
  const emulator = await openEmulator({ historyHours: 3, clock: () => NOW });
  const ingest = await openIngest(emulator);
  const searches = () => emulator.requests().counts["search-event-logs"] ?? 0;
  const searchesOfPoll = async () => {
    const before = searches();
    await ingest.poll();
    return searches() - before;
  };
  await ingest.poll();
  await ingest.database.db.insert(platformHealth).values({ zoneId: ZONE, watchedSince: new Date(NOW) });
  emulator.advance(10_000);
  expect(await searchesOfPoll()).toBe(0);

  await noteRising(ingest.database.db, [ZONE], emulator.now());
  expect(await searchesOfPoll()).toBe(1);
  emulator.advance(2_000);
  expect(await searchesOfPoll()).toBe(0);
});
