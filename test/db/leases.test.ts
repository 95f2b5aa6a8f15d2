import { eq, sql } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  acquireLease,
  assertFence,
  claimRuns,
  releaseLease,
  renewLease,
  skipLostNumbers,
  TIMELINE,
} from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { ruleMetrics } from "#db/schema/rules.ts";
import { leases } from "#db/schema/service.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

const name = "walk-days:7";
const ttlMs = 60_000;
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.db.delete(leases);
  await database.db.delete(ruleMetrics);
});

function acquire(holder: string): Promise<number | null> {
  return acquireLease(database.db, { name, holder, ttlMs });
}

async function expire(): Promise<void> {
  await database.db.update(leases).set({ expiresAt: sql`now() - interval '1 second'` });
}

/** Stands for a page: one row, then the fence, then the commit. */
function commitUnder(fence: number, ruleId: string): Promise<void> {
  return inTransaction(database, async ({ tx }) => {
    await tx.insert(ruleMetrics).values({ zoneId: 7, ruleId, day: "2026-11-20", total: 1 });
    await assertFence(tx, name, fence);
  });
}

test("one of ten callers that acquire a lease at once gets it", async () => {
  const fences = await Promise.all(Array.from({ length: 10 }, (_, n) => acquire(`replica-${n}`)));

  expect(fences.filter((fence) => fence !== null)).toEqual([1]);
});

test("the fence grows with every owner, also after a release", async () => {
  expect(await acquire("a")).toBe(1);
  await releaseLease(database.db, { name, fence: 1 });
  expect(await acquire("b")).toBe(2);
  await expire();
  expect(await acquire("a")).toBe(3);
});

test("a zombie whose lease was taken over cannot commit, and its successor can", async () => {
  await acquire("zombie");
  await expire();
  const successor = await acquire("successor");

  await expect(commitUnder(1, "zombie")).rejects.toMatchObject({ code: "FENCE_LOST" });
  await commitUnder(successor ?? 0, "successor");

  const stored = await database.db.select({ ruleId: ruleMetrics.ruleId }).from(ruleMetrics);
  expect(stored).toEqual([{ ruleId: "successor" }]);
});

test("a holder that released its lease cannot commit under it", async () => {
  await acquire("a");
  await releaseLease(database.db, { name, fence: 1 });

  await expect(commitUnder(1, "late")).rejects.toMatchObject({ code: "FENCE_LOST" });
});

test("a takeover waits for the commit that has checked its fence", async () => {
  await acquire("a");
  await expire();
  const order: string[] = [];
  let takeover: Promise<number | null> | undefined;
  await inTransaction(database, async ({ tx }) => {
    await assertFence(tx, name, 1);
    takeover = acquire("b").finally(() => order.push("taken"));
    await expect.poll(countWaiting).toBe(1);
    order.push("committing");
  });

  expect(await takeover).toBe(2);
  expect(order).toEqual(["committing", "taken"]);
});

async function countWaiting(): Promise<number> {
  const waiting = await database.db.execute<{ count: number }>(
    sql`select count(*)::int as count from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()`,
  );
  return waiting.rows[0]?.count ?? 0;
}

test("a lease is renewed by its owner, late too, and not by a predecessor", async () => {
  await acquire("a");
  await expire();
  expect(await renewLease(database.db, { name, fence: 1, ttlMs })).toBe(true);
  expect(await acquire("b")).toBeNull();
  await expire();
  await acquire("b");

  expect(await renewLease(database.db, { name, fence: 1, ttlMs })).toBe(false);
  await releaseLease(database.db, { name, fence: 1 });
  const holders = await database.db.select({ holder: leases.holder }).from(leases);
  expect(holders).toEqual([{ holder: "b" }]);
});

const SLOT = Date.UTC(2026, 10, 25, 12);
const runs = (names: readonly string[], at = SLOT, pauseMs = 3_600_000) =>
  names.map((name) => ({ name, at, nextAt: at + pauseMs, latestNextAt: at + 2 * pauseMs }));
const claim = async (claimed: ReturnType<typeof runs>) => [...(await claimRuns(database.db, claimed)).keys()];

test("a run is claimed once among ten callers, and so is the next, and claims are counted", async () => {
  const ten = async (at: number) =>
    (
      await Promise.all(Array.from({ length: 10 }, () => claimRuns(database.db, runs(["hourly"], at))))
    ).flatMap((claimed) => [...claimed]);

  expect(await ten(SLOT)).toEqual([["hourly", 1]]);
  expect(await ten(SLOT)).toEqual([]);
  expect(await ten(SLOT + 3_600_000)).toEqual([["hourly", 2]]);
});

test("each of many runs is claimed once among ten callers, in whatever order they ask", async () => {
  const all = runs(Array.from({ length: 40 }, (_, n) => `tick.${n}`));
  const asked = Array.from({ length: 10 }, (_, n) => claim(n % 2 ? all : all.toReversed()));
  const claimed = (await Promise.all(asked)).flat();
  expect(claimed.sort()).toEqual(all.map(({ name: tick }) => tick).sort());

  await database.db
    .update(leases)
    .set({ dueAt: new Date(SLOT) })
    .where(eq(leases.name, "tick.7"));
  expect(await claim(all)).toEqual(["tick.7"]);
});

/** A start of a replica at this time, with an hourly expression. */
function start(at: number) {
  const nextAt = at - (at % 3_600_000) + 3_600_000;
  return { name: "hourly", at, nextAt, latestNextAt: nextAt + 3_600_000 };
}

test("a start between two runs claims nothing, and one after a missed run claims it", async () => {
  await claim(runs(["hourly"]));
  expect(await claim([start(SLOT + 60_000)])).toEqual([]);
  expect(await claim([start(SLOT + 4_000_000)])).toEqual(["hourly"]);
});

test("a start shortly before a run claims nothing once another has claimed that run, and the run stays claimed", async () => {
  await claim(runs(["hourly"]));
  expect(await claim([start(SLOT - 100)])).toEqual([]);
  expect(await claim(runs(["hourly"]))).toEqual([]);
});

test("an expression that was made more frequent is due at once, among ten callers once", async () => {
  await claim(runs(["archive-days"], SLOT, 86_400_000));
  const minutely = runs(["archive-days"], SLOT + 60_000, 60_000);
  const claims = await Promise.all(Array.from({ length: 10 }, () => claim(minutely)));

  expect(claims.flat()).toEqual(["archive-days"]);
});

test("a due time from a clock that was hours ahead is void", async () => {
  await claim(runs(["minutely"], SLOT + 3_600_000, 60_000));
  expect(await claim(runs(["minutely"], SLOT, 60_000))).toEqual(["minutely"]);
});

test("a caller that is late for a run does not claim it after another has claimed the next one", async () => {
  await claim(runs(["minutely"], SLOT + 60_000, 60_000));
  expect(await claim(runs(["minutely"], SLOT, 60_000))).toEqual([]);
});

test("a server that lacks what the two servers before it skipped skips the numbers of both, once", async () => {
  const lost = 10_000;
  const timeline = Number.parseInt((await skipLostNumbers(database.db, null)) ?? "", 16);
  const fence = (await acquire("a")) ?? 0;
  const readNext = async () =>
    Number(
      (await database.db.execute<{ id: string }>(sql`select nextval('alerts_id_seq') as id`)).rows[0]?.id,
    );
  const id = await readNext();
  await database.db
    .update(leases)
    .set({ fence: timeline - 2 })
    .where(eq(leases.name, TIMELINE));

  await Promise.all([1, 2, 3].map(() => skipLostNumbers(database.db, null)));

  expect(await acquire("b")).toBe(fence + 2 * lost + 1);
  expect(await readNext()).toBe(id + 2 + 2 * lost);
});
