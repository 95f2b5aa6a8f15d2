import { randomUUID } from "node:crypto";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { readSqlState } from "#lib/errors.ts";
import { openFaultyWorld, proxyPostgres, runUntilDone } from "./faulty-world.ts";
import { findBreaches, findMissing, readShown } from "./invariants.ts";
import { ZONE } from "./replica.ts";

/** Returns the SQLSTATE with which a run failed; null when it did not. */
const stateOf = (run: Promise<void>) => run.then(() => null, readSqlState);

const INGEST = ["poll-events", "walk-days", "roll-up-trends"];

test.each(["before", "after"] as const)(
  "F31: a connection lost %s Postgres has done the COMMIT leaves every page stored and counted once",
  async (when) => {
    const world = await proxyPostgres(await openFaultyWorld());
    const replica = world.openReplica();
    let cuts = 0;
    // Each number selects another commit: a first page's, one in the middle of a pass, a roll-up's.
    for (const nth of [1, 2, 4, 7, 11]) {
      let seen = 0;
      const cut = world.toPostgres.cutCommit(when, () => ++seen === nth);
      for (const job of INGEST) await replica.run(job).catch(() => undefined);
      if (cut.wasCut()) cuts++;
      expect(await world.inspect(false)).toEqual([]);
      await world.expireLeases();
      world.emulator.advance(10 * 60_000);
    }
    expect(cuts).toBeGreaterThan(2);
    await runUntilDone(world, replica, INGEST);
    world.emulator.advance(30 * 60_000);
    await runUntilDone(world, replica, INGEST);
    expect(await world.inspect()).toEqual([]);
  },
);

test("F31: a commit of which nobody knows the outcome is made again by a cursor that did not move, never twice", async () => {
  const world = await proxyPostgres(await openFaultyWorld());
  const replica = world.openReplica();
  await replica.run("poll-events");
  const { rows: counts } = await world.database.pool.query(
    "select sum(stored_count)::int as n from coverage_windows",
  );
  const cut = world.toPostgres.cutCommit("after");
  await replica.run("walk-days").catch(() => undefined);
  expect(cut.wasCut()).toBe(true);
  const { rows } = await world.database.pool.query("select max(pages_seen) as pages from ingest_cursors");
  expect(rows[0].pages).toBeGreaterThan(0);
  await world.expireLeases();
  await runUntilDone(world, replica, ["walk-days"]);
  expect(
    (await world.database.pool.query("select sum(stored_count)::int as n from coverage_windows")).rows,
  ).toEqual(counts);
  expect(await world.inspect()).toEqual([]);
});

test("F30: a connection that stalls within a page, or gets no answer, ends in an error and loses nothing", async () => {
  const world = await proxyPostgres(await openFaultyWorld());
  const replica = world.openReplica();
  await replica.run("poll-events");
  for (const fault of [{ isStalled: true }, { isDeaf: true }]) {
    let seen = 0;
    // The stall begins within a transaction, not between two.
    world.toPostgres.cutCommit("before", () => {
      if (++seen === 2) world.toPostgres.behave(fault);
      return false;
    });
    const stopped = AbortSignal.timeout(800);
    const run = replica.run("walk-days", stopped).catch(() => undefined);
    await new Promise((resolve) => stopped.addEventListener("abort", resolve));
    world.toPostgres.behave({ isStalled: false, isDeaf: false });
    world.toPostgres.cut();
    await run;
    await world.expireLeases();
    expect(await world.inspect(false)).toEqual([]);
  }
  await runUntilDone(world, replica, INGEST);
  expect(await world.inspect()).toEqual([]);
});

test("F30: a slow network of small pieces changes nothing but the time", async () => {
  const world = await proxyPostgres(await openFaultyWorld({ historyHours: 1 }));
  world.toPostgres.behave({ delayMs: 1, bytesPerSecond: 2_000_000 });
  world.toPlatform.behave({ delayMs: 5 });
  await runUntilDone(world, world.openReplica(), INGEST, 1);
  expect(await world.inspect()).toEqual([]);
});

test("F32: a primary that turned read-only stores nothing and loses nothing, and the next one is written to", async () => {
  const world = await proxyPostgres(await openFaultyWorld());
  const { pool } = world.database;
  const replica = world.openReplica();
  await replica.run("poll-events");
  const turn = async (state: "on" | "off") => {
    const { rows } = await pool.query<{ name: string }>("select current_database() as name");
    await pool.query(`alter database ${rows[0]?.name} set default_transaction_read_only = ${state}`);
    world.toPostgres.cut();
  };
  await turn("on");
  for (const job of INGEST.slice(0, 2)) await expect.poll(() => stateOf(replica.run(job))).toBe("25006");
  await turn("off");
  await runUntilDone(world, replica, INGEST);
  expect(await world.inspect()).toEqual([]);
});

test("F33: a full disk fails the page and not the process, no cursor moves past it, and everything comes once there is room", async () => {
  const world = await openFaultyWorld();
  const { pool } = world.database;
  await pool.query(`create function disk_full() returns trigger language plpgsql as
    $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$`);
  await pool.query("create trigger full_disk before insert on waf_events execute function disk_full()");
  const replica = world.openReplica();
  expect(await stateOf(replica.run("poll-events"))).toBe("53100");
  expect(await stateOf(replica.run("walk-days"))).toBe("53100");
  // Hours and days without events could be read.
  const { rows } = await pool.query(
    `select (select count(*) from coverage_windows where searched_through is not null and starts_at > $1)::int as searched,
      (select count(*) from pages where entries > 0)::int as pages, (select count(*) from waf_events)::int as events`,
    [new Date(world.emulator.now() - 3 * 3_600_000)],
  );
  expect(rows).toEqual([{ searched: 0, pages: 0, events: 0 }]);
  await pool.query("drop trigger full_disk on waf_events");
  await runUntilDone(world, replica, INGEST);
  expect(await world.inspect()).toEqual([]);
});

test("F33: where Postgres has no connection to give, the jobs fail with its answer and go on when it has", async () => {
  const world = await openFaultyWorld();
  const { pool, url } = world.database;
  const role = `r${randomUUID().replaceAll("-", "")}`;
  const { rows } = await pool.query<{ name: string }>("select current_database() as name");
  await pool.query(`create role ${role} login superuser password 'test'`);
  onTestFinished(async () => {
    await pool.query(`reassign owned by ${role} to current_user; drop owned by ${role}; drop role ${role}`);
  });
  const limited = new URL(url);
  limited.username = role;
  limited.password = "test";
  // The limit does not apply to superusers, but to owners.
  await pool.query(`alter role ${role} nosuperuser connection limit 0; alter database ${rows[0]?.name} owner to ${role};
    grant longwatch to ${role}`);
  const replica = world.openReplica({ databaseUrl: limited.href });
  expect(await stateOf(replica.run("poll-events"))).toBe("53300");
  await pool.query(`alter role ${role} connection limit -1`);
  await runUntilDone(world, replica, INGEST);
  await replica.close();
  expect(await world.inspect()).toEqual([]);
});

test("F38: a database restored from a copy taken hours ago fills itself again as far as the platform reaches", async () => {
  const world = await openFaultyWorld();
  const first = world.openReplica();
  await runUntilDone(world, first, INGEST);
  await first.close();
  const { pool, url } = world.database;
  const { rows } = await pool.query<{ name: string }>("select current_database() as name");
  const backup = `${rows[0]?.name}_backup`;
  const restored = new URL(url);
  restored.pathname = `/${backup}`;
  // A template must have no session.
  await asAdministrator(
    url,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${rows[0]?.name}'`,
  );
  await asAdministrator(url, `create database ${backup} template ${rows[0]?.name}`);
  onTestFinished(() => asAdministrator(url, `drop database ${backup} with (force)`));

  const second = world.openReplica();
  for (let hour = 0; hour < 2; hour++) {
    world.emulator.advance(3_600_000);
    await runUntilDone(world, second, INGEST);
  }
  await second.close();
  const third = world.openReplica({ databaseUrl: restored.href });
  await runUntilDone(world, third, INGEST);
  world.emulator.advance(30 * 60_000);
  await runUntilDone(world, third, INGEST);
  const shown = await readShown(world.emulator.url, ZONE);
  expect(await findBreaches(third.database, ZONE, async () => shown)).toEqual([]);
  expect(await findMissing(third.database, ZONE, shown)).toEqual([]);
  await third.close();
});

async function asAdministrator(url: string, statement: string): Promise<void> {
  const elsewhere = new URL(url);
  elsewhere.pathname = "/postgres";
  const client = new pg.Client({ connectionString: elsewhere.href });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
