import { sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import {
  endRefusal,
  MAX_PAUSE_MS,
  pauseBudget,
  pauseZone,
  type RequestBudget,
  readBudgets,
  readPauses,
  takeTokens,
  toBudgetName,
} from "#db/ingest/request-budgets.ts";
import { requestBudgets } from "#db/schema/service.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

/** Slow enough that a test adds nothing to it. */
const slow: RequestBudget = { name: "edge", ratePerSecond: 0.001, burst: 10 };
const all = { atMost: 100, reserve: 0 };
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

beforeEach(() => database.db.delete(requestBudgets));

const read = async (budget: RequestBudget) => (await readBudgets(database.db, [budget]))[0];
const take = (how = all, budget = slow) => takeTokens(database.db, budget, how);

/** Moves the last take into the past. */
async function age(ms: number): Promise<void> {
  const by = sql`${ms}::float8 * interval '1 millisecond'`;
  await database.db.update(requestBudgets).set({
    refilledAt: sql`${requestBudgets.refilledAt} - ${by}`,
    pausedUntil: sql`${requestBudgets.pausedUntil} - ${by}`,
    refusedSince: sql`${requestBudgets.refusedSince} - ${by}`,
  });
}

test("a bucket begins full, gives what it has and then says how long to wait", async () => {
  expect(await read(slow)).toBeNull();
  expect(await take({ atMost: 3, reserve: 0 })).toEqual({
    granted: 3,
    waitMs: 0,
    isPaused: false,
    refusedZones: [],
  });
  expect(await take()).toMatchObject({ granted: 7, waitMs: 0 });
  const { granted, waitMs } = await take();
  expect(granted).toBe(0);
  expect(waitMs).toBeGreaterThan(0);
  expect(waitMs).toBeLessThanOrEqual(1_000_000);
});

test("time refills it at the rate, and never beyond the burst", async () => {
  await take();
  await age(4_000_000);
  expect(await take()).toMatchObject({ granted: 4 });
  await age(400_000_000);
  expect((await read(slow))?.tokens).toBe(10);
  expect(await take()).toMatchObject({ granted: 10 });
});

test("a caller that leaves a reserve waits while the others are still served", async () => {
  expect(await take({ atMost: 100, reserve: 5 })).toMatchObject({ granted: 5 });
  const low = await take({ atMost: 1, reserve: 5 });
  expect(low.granted).toBe(0);
  expect(low.waitMs).toBeGreaterThan(0);
  expect(await take({ atMost: 1, reserve: 0 })).toMatchObject({ granted: 1 });
});

test("a pause stops every taker, the longest one counts, and it ends with an empty bucket", async () => {
  await pauseBudget(database.db, "edge", 60_000);
  await pauseBudget(database.db, "edge", 1_000);
  const paused = await take();
  expect(paused).toMatchObject({ granted: 0, isPaused: true });
  expect(paused.waitMs).toBeLessThanOrEqual(60_000);
  expect(paused.waitMs).toBeGreaterThan(1_000);
  expect(await read(slow)).toMatchObject({ tokens: 0, isPaused: true });
  await age(60_000);
  expect(await take()).toMatchObject({ granted: 0, isPaused: false });
  await age(2_000_000);
  expect(await take()).toMatchObject({ granted: 2 });
});

test("a pause may be the first use of the bucket", async () => {
  await pauseBudget(database.db, "edge", 60_000);
  expect(await take()).toMatchObject({ granted: 0, isPaused: true });
});

test("no pause is longer than five minutes, whatever the platform requests", async () => {
  await pauseBudget(database.db, "edge", 86_400_000);
  expect((await take()).waitMs).toBeLessThanOrEqual(MAX_PAUSE_MS);
});

const refuse = (zoneId: number, pauseMs = 60_000) => pauseZone(database.db, "edge", { zoneId, pauseMs });
const refusedZones = async () => (await take({ atMost: 0, reserve: 0 })).refusedZones;

test("a refused zone waits by itself, for at most five minutes, and the bucket goes on", async () => {
  expect(await refuse(101, 86_400_000)).toBe(false);
  expect(await refuse(101, 1_000)).toBe(false);
  const { granted, isPaused, refusedZones: refused } = await take();
  expect([granted, isPaused]).toEqual([10, false]);
  expect(refused).toEqual([{ zoneId: 101, waitMs: expect.any(Number) }]);
  expect(refused[0]?.waitMs).toBeLessThanOrEqual(MAX_PAUSE_MS);
  expect(refused[0]?.waitMs).toBeGreaterThan(MAX_PAUSE_MS - 60_000);
  await age(MAX_PAUSE_MS);
  expect(await refusedZones()).toEqual([{ zoneId: 101, waitMs: 0 }]);
  await endRefusal(database.db, 101);
  expect(await refusedZones()).toEqual([]);
});

test("refusals of two zones that begin within a minute pause every caller for the second one's time", async () => {
  await take();
  expect(await refuse(101, 200_000)).toBe(false);
  await age(50_000);
  expect(await refuse(102, 30_000)).toBe(true);
  const { isPaused, waitMs } = await take();
  expect(isPaused).toBe(true);
  expect(waitMs).toBeLessThanOrEqual(30_000);
});

test("a zone that has been refused for longer than a minute pauses no other zone when it is refused again", async () => {
  await refuse(101);
  await age(61_000);
  expect(await refuse(102)).toBe(false);
  expect(await refuse(101)).toBe(false);
  expect(await take()).toMatchObject({ isPaused: false });
  // Long after its pause, or after an answer, a refusal is a new one.
  await age(61_000);
  await endRefusal(database.db, 101);
  expect([await refuse(103), await refuse(101)]).toEqual([false, true]);
  await age(MAX_PAUSE_MS + 120_000);
  expect([await refuse(102), await refuse(103)]).toEqual([false, true]);
});

test("the pauses of the account and of the refused zones are known with their ends", async () => {
  await refuse(101);
  await refuse(102);
  await endRefusal(database.db, 102);
  const pauses = await readPauses(database.db);
  expect(new Set(pauses.map(({ zoneId }) => zoneId))).toEqual(new Set([101, null]));
  for (const { until, refusedSince, zoneId } of pauses)
    expect([until > Date.now(), refusedSince === null]).toEqual([true, zoneId === null]);
});

test("a clock that stepped back by an hour stops no caller for an hour", async () => {
  await take();
  await pauseBudget(database.db, "edge", 60_000);
  await age(-3_600_000);
  const paused = await take();
  expect(paused.waitMs).toBeLessThanOrEqual(MAX_PAUSE_MS);
  await age(MAX_PAUSE_MS + 3_000_000);
  expect(await take()).toMatchObject({ granted: 3, isPaused: false });
  await age(-3_600_000);
  expect(await take()).toMatchObject({ granted: 0, isPaused: false });
  await age(1_000_000);
  expect(await take()).toMatchObject({ granted: 1 });
});

test("unused tokens of a dead caller return with time", async () => {
  const budget = { name: "edge", ratePerSecond: 50, burst: 10 };
  expect(await take(all, budget)).toMatchObject({ granted: 10 });
  await vi.waitFor(async () => expect((await read(budget))?.tokens).toBe(10), 10_000);
  expect(await take(all, budget)).toMatchObject({ granted: 10 });
});

interface Grant {
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly granted: number;
}

/**
 * Every window that begins with a take and ends with an answer: what was certainly granted inside it is at most what the
 * bucket allows for it. A slow machine only makes the windows longer.
 */
function findExcess(grants: readonly Grant[], { burst, ratePerSecond }: RequestBudget): string[] {
  const excess: string[] = [];
  for (const { sentAt: from } of grants) {
    for (const { answeredAt: to } of grants.filter(({ answeredAt }) => answeredAt >= from)) {
      const inside = grants.filter((grant) => grant.sentAt >= from && grant.answeredAt <= to);
      const sum = inside.reduce((total, { granted }) => total + granted, 0);
      // The bucket counts whole milliseconds of a clock that may be slewed by a little.
      const allowed = burst + (ratePerSecond * (to - from + 2) * 1.001) / 1_000;
      if (sum > allowed) excess.push(`${sum} in ${to - from} ms, allowed ${allowed}`);
    }
  }
  return excess;
}

const taker = fc.array(
  fc.record({ atMost: fc.integer({ min: 1, max: 8 }), reserve: fc.constantFrom(0, 0, 2) }),
  { minLength: 5, maxLength: 40 },
);

test("five takers at once never get more in any window than burst + rate * window (F40)", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(taker, { minLength: 5, maxLength: 5 }),
      fc.integer({ min: 1, max: 400 }),
      fc.integer({ min: 4, max: 20 }),
      async (takers, ratePerSecond, burst) => {
        await database.db.delete(requestBudgets);
        const budget = { name: "edge", ratePerSecond, burst };
        const grants: Grant[] = [];
        await Promise.all(
          takers.map(async (takes) => {
            for (const how of takes) {
              const sentAt = performance.now();
              const { granted } = await takeTokens(database.db, budget, how);
              expect(granted).toBeLessThanOrEqual(how.atMost);
              if (granted > 0) grants.push({ sentAt, answeredAt: performance.now(), granted });
            }
          }),
        );
        expect(grants.length).toBeGreaterThan(0);
        expect(findExcess(grants, budget)).toEqual([]);
      },
    ),
    { numRuns: 20 },
  );
});

test("refusals of two zones pause their own account only, and a zone of another account is no second refusal", async () => {
  const shop = { ...slow, name: toBudgetName("shop") };
  expect(await pauseZone(database.db, slow.name, { zoneId: 101, pauseMs: 60_000 })).toBe(false);
  expect(await pauseZone(database.db, shop.name, { zoneId: 201, pauseMs: 60_000 })).toBe(false);
  expect(await take(all, shop)).toMatchObject({ isPaused: false, refusedZones: [{ zoneId: 201 }] });
  expect(await pauseZone(database.db, shop.name, { zoneId: 202, pauseMs: 60_000 })).toBe(true);
  expect(await take(all, shop)).toMatchObject({ isPaused: true });
  expect(await take()).toMatchObject({ isPaused: false, refusedZones: [{ zoneId: 101 }] });
  const pauses = await readPauses(database.db);
  expect(pauses.filter(({ zoneId }) => zoneId === null)).toMatchObject([{ account: "shop" }]);
  expect(pauses.map(({ account, zoneId }) => `${account} ${zoneId}`).sort()).toEqual([
    "default 101",
    "shop 201",
    "shop 202",
    "shop null",
  ]);
});
