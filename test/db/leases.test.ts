import { eq, sql } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { inTransaction } from "#db/postgres/transaction.ts";
import { leases } from "#db/schema/leases.ts";
import { ruleMetrics } from "#db/schema/rule-metrics.ts";
import { acquireLease, assertFence, claimDue, releaseLease, renewLease } from "#db/service/leases.ts";
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

test("of ten that reach for a lease one gets it", async () => {
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

test("who released a lease cannot commit under it", async () => {
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
  const held = await database.db.select({ holder: leases.holder }).from(leases);
  expect(held).toEqual([{ holder: "b" }]);
});

test("a due tick is claimed once among ten callers, and once again when its time has come", async () => {
  const hourly = [{ name: "hourly", periodMs: 86_400_000_000 }];
  const claim = async () =>
    (await Promise.all(Array.from({ length: 10 }, () => claimDue(database.db, hourly)))).flatMap((names) => [
      ...names,
    ]);

  expect(await claim()).toEqual(["hourly"]);
  expect(await claim()).toEqual([]);
  await database.db.update(leases).set({ dueAt: sql`now()` }).where(eq(leases.name, "hourly"));
  expect(await claim()).toEqual(["hourly"]);
});

test("of many ticks that are claimed together each is claimed once among ten callers, in whatever order they ask", async () => {
  const periods = Array.from({ length: 40 }, (_, n) => ({ name: `tick.${n}`, periodMs: 86_400_000_000 }));
  const asked = Array.from({ length: 10 }, (_, n) =>
    claimDue(database.db, n % 2 ? periods : periods.toReversed()),
  );
  const claimed = (await Promise.all(asked)).flatMap((names) => [...names]);
  expect(claimed.sort()).toEqual(periods.map(({ name: tick }) => tick).sort());

  await database.db.update(leases).set({ dueAt: sql`now()` }).where(eq(leases.name, "tick.7"));
  expect([...(await claimDue(database.db, periods))]).toEqual(["tick.7"]);
});

test("the next tick lies on a whole period of Postgres's clock, ahead of now", async () => {
  // In one transaction, so that now() is the same moment in the claim and in the check.
  const due = await inTransaction(database, async ({ tx }) => {
    await claimDue(tx, [{ name: "half-minutely", periodMs: 30_000 }]);
    return tx.execute(sql`
      select extract(epoch from due_at)::numeric % 30 = 0 as whole, due_at > now() as ahead,
        due_at <= now() + interval '30 seconds' as near from leases`);
  });
  expect(due.rows).toEqual([{ whole: true, ahead: true, near: true }]);
});

test("an offset moves the next tick, and is claimed once like every other", async () => {
  const period = { name: "shifted", periodMs: 30_000, offsetMs: 12_000 };
  const due = await inTransaction(database, async ({ tx }) => {
    await claimDue(tx, [period]);
    return tx.execute(sql`
      select extract(epoch from due_at)::numeric % 30 as shift, due_at > now() as ahead,
        due_at <= now() + interval '30 seconds' as near from leases`);
  });
  expect(due.rows).toEqual([{ shift: "12.000000", ahead: true, near: true }]);
  expect(await claimDue(database.db, [period])).toEqual(new Set());
});

test("a shortened period is due at once, among ten callers once, and then on its own boundaries", async () => {
  await claimDue(database.db, [{ name: "archive-days", periodMs: 86_400_000_000 }]);
  const shortened = [{ name: "archive-days", periodMs: 60_000 }];
  const claims = await Promise.all(Array.from({ length: 10 }, () => claimDue(database.db, shortened)));

  expect(claims.flatMap((names) => [...names])).toEqual(["archive-days"]);
  const due = await database.db.execute(
    sql`select due_at <= now() + interval '1 minute' as near from leases`,
  );
  expect(due.rows).toEqual([{ near: true }]);
});

test("a caller whose now() lies before a boundary does not claim the period that another claimed after it", async () => {
  const period = { name: "half-minutely", periodMs: 30_000 };
  await inTransaction(database, async ({ tx }) => {
    await claimDue(tx, [period]);
    await tx.update(leases).set({ dueAt: sql`${leases.dueAt} + interval '30 seconds'` });
    expect(await claimDue(tx, [period])).toEqual(new Set());
  });
});
