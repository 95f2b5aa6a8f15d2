import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { hasEnded, holdLease, nameHolder } from "#db/postgres/hold-lease.ts";
import { acquireLease, assertFence, readHolder } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

const name = "walk-days.7.2026-11-20";
/** These tests do not depend on time: each takeover happens long before a limit. */
const ttlMs = 3_600_000;
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());
beforeEach(() => database.pool.query("delete from leases"));

/** Another process of this machine that holds the lease. */
async function startOwner(): Promise<ChildProcess> {
  const args = [database.url, name, String(ttlMs)];
  const owner = fork(path.join(import.meta.dirname, "lease-owner.ts"), args);
  onTestFinished(() => void owner.kill("SIGKILL"));
  expect(await once(owner, "message")).toEqual([1, undefined]);
  return owner;
}

async function kill(owner: ChildProcess): Promise<void> {
  const exited = once(owner, "exit");
  owner.kill("SIGKILL");
  await exited;
}

const hold = () => holdLease(database, { name, ttlMs }, async ({ fence }) => fence);

// The ended processes are read from /proc.
describe.runIf(process.platform === "linux")("on one machine", () => {
  test("the lease of a process that was killed is taken over at once", async () => {
    const owner = await startOwner();
    expect(await hold()).toBeNull();
    await kill(owner);

    expect(await hold()).toBe(2);
  });

  test("one of ten processes that find a killed holder's lease takes it over", async () => {
    await kill(await startOwner());
    const gate = Promise.withResolvers<void>();
    const settled: unknown[] = [];
    const all = Array.from({ length: 10 }, () =>
      holdLease(database, { name, ttlMs }, async ({ fence }) => {
        await gate.promise;
        return fence;
      }).then((result) => settled.push(result)),
    );
    await expect.poll(() => settled).toEqual(Array(9).fill(null));
    gate.resolve();
    await Promise.all(all);

    expect(settled.at(-1)).toBe(2);
  });

  test("a process that is stopped keeps its lease: it has not ended", async () => {
    const owner = await startOwner();
    owner.kill("SIGSTOP");

    expect(await hold()).toBeNull();
    expect(hasEnded((await readHolder(database.db, name)) ?? "")).toBe(false);
  });

  test("a killed holder's statements are committed before its successor begins, or not at all", async () => {
    const former = nameHolder();
    await acquireLease(database.db, { name, holder: former, ttlMs });
    let takeover: Promise<number | null> | undefined;
    await inTransaction(database, async ({ tx }) => {
      await assertFence(tx, name, 1);
      takeover = acquireLease(database.db, { name, holder: nameHolder(), ttlMs, ended: former });
      await expect.poll(countWaiting).toBe(1);
    });
    expect(await takeover).toBe(2);

    await expect(inTransaction(database, ({ tx }) => assertFence(tx, name, 1))).rejects.toMatchObject({
      code: "FENCE_LOST",
    });
  });

  test("a lease that has another holder by now is not taken from that one", async () => {
    const former = nameHolder();
    await acquireLease(database.db, { name, holder: former, ttlMs });
    await acquireLease(database.db, { name, holder: "a second", ttlMs, ended: former });

    expect(await acquireLease(database.db, { name, holder: "a third", ttlMs, ended: former })).toBeNull();
  });

  test("another process that was given the id of one that ended is not taken for it", () => {
    const self = JSON.parse(nameHolder()) as Record<string, unknown>;
    expect(hasEnded(JSON.stringify(self))).toBe(false);
    expect(hasEnded(JSON.stringify({ ...self, start: "1" }))).toBe(true);
  });

  test.each(["boot", "namespace", "host"])("of a holder with another %s nothing is known", async (member) => {
    const owner = await startOwner();
    const holder = JSON.parse((await readHolder(database.db, name)) ?? "") as Record<string, unknown>;
    await kill(owner);

    expect(hasEnded(JSON.stringify(holder))).toBe(true);
    expect(hasEnded(JSON.stringify({ ...holder, [member]: "another" }))).toBe(false);
  });

  test.each(["", "8f7e0c1a", "{", "{}", '{"pid":0}', '{"pid":-1}', '{"pid":"1"}'])(
    "a holder %j that no version of this wrote has not ended",
    (holder) => {
      expect(hasEnded(holder)).toBe(false);
    },
  );
});

test("two holdings of one process have two names", () => {
  expect(nameHolder()).not.toBe(nameHolder());
});

async function countWaiting(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity
     where wait_event_type = 'Lock' and datname = current_database()`,
  );
  return rows[0]?.count ?? 0;
}
