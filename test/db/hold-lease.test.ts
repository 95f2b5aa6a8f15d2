import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { createDatabase } from "#db/client.ts";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { acquireLease } from "#db/postgres/leases.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

const name = "walk-days.7.2026-11-20";
const ttlMs = 60_000;
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.pool.query("delete from leases");
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});

afterEach(() => void vi.useRealTimers());

function fail(error: Error): never {
  throw error;
}

async function leaseRow() {
  const { rows } = await database.pool.query<{ holder: string | null; fence: string; left: number | null }>(
    "select holder, fence, extract(epoch from expires_at - now())::float8 * 1000 as left from leases where name = $1",
    [name],
  );
  return rows[0];
}

const hold = <T>(fn: (lease: OwnedLease) => Promise<T>) => holdLease(database, { name, ttlMs }, fn);

test("a holder of the lease excludes others, and its result is returned", async () => {
  const result = await hold(async ({ fence }) => {
    expect(await hold(async () => "another")).toBeNull();
    return fence;
  });
  expect(result).toBe(1);
});

test("afterwards the lease is free at once, with the fence it had, also when the work failed", async () => {
  await expect(hold(async () => Promise.reject(new Error("the work's own")))).rejects.toThrow(
    "the work's own",
  );
  expect(await leaseRow()).toMatchObject({ holder: null, left: null, fence: "1" });
  expect(await hold(async ({ fence }) => fence)).toBe(2);
  expect(vi.getTimerCount()).toBe(0);
});

test("the lease is renewed before a third of its time is over, for as long as the work takes", async () => {
  await hold(async ({ lost }) => {
    for (let renewal = 0; renewal < 4; renewal++) {
      await database.pool.query("update leases set expires_at = now() + interval '1 second'");
      vi.advanceTimersByTime(ttlMs / 3);
      await vi.waitFor(async () => expect((await leaseRow())?.left).toBeGreaterThan(ttlMs / 2));
    }
    expect(lost.aborted).toBe(false);
  });
});

test("an expired lease that no other process took is renewed by its holder", async () => {
  await hold(async ({ lost }) => {
    await database.pool.query("update leases set expires_at = now() - interval '1 second'");
    vi.advanceTimersByTime(ttlMs / 3);
    await vi.waitFor(async () => expect((await leaseRow())?.left).toBeGreaterThan(0));
    expect(lost.aborted).toBe(false);
  });
});

test("work whose lease was taken is aborted, and leaves the new holder's lease alone", async () => {
  await hold(async ({ lost }) => {
    await database.pool.query("update leases set expires_at = now() - interval '1 second'");
    expect(await acquireLease(database.db, { name, holder: "another", ttlMs })).toBe(2);
    const told = once(lost, "abort");
    vi.advanceTimersByTime(ttlMs / 3);
    await told;
    expect(String(lost.reason)).toContain(`lease ${name} was lost`);
  });
  expect(await leaseRow()).toMatchObject({ holder: "another", fence: "2" });
  expect((await leaseRow())?.left).toBeGreaterThan(0);
});

test("a renewal that fails is no loss: the next one is made as usual", async () => {
  // One connection: what is asked of it happens in the order in which it was asked.
  const single = createDatabase({
    url: database.url,
    max: 1,
    applicationName: "longwatch test",
    onError: fail,
  });
  await holdLease(single, { name, ttlMs }, async ({ lost }) => {
    await single.pool.query("alter table leases rename to leases_away");
    vi.advanceTimersByTime(ttlMs / 3);
    await single.pool.query("alter table leases_away rename to leases");
    await single.pool.query("update leases set expires_at = now() + interval '1 second'");
    vi.advanceTimersByTime(ttlMs / 3);
    await vi.waitFor(async () => expect((await leaseRow())?.left).toBeGreaterThan(ttlMs / 2));
    expect(lost.aborted).toBe(false);
  });
  await single.close();
});

test("one of ten concurrent holders runs, and the others run nothing", async () => {
  let ran = 0;
  let release: () => void = () => undefined;
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  const all = Array.from({ length: 10 }, () =>
    hold(async () => {
      ran++;
      await until;
      return "ran";
    }),
  );
  const settled: (string | null)[] = [];
  for (const one of all) void one.then((result) => settled.push(result));
  await vi.waitFor(() => expect(settled).toHaveLength(9));
  release();
  expect((await Promise.all(all)).filter((result) => result !== null)).toEqual(["ran"]);
  expect(ran).toBe(1);
});
