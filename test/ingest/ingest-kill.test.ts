import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { readSearchedHours } from "#db/proof/horizons.ts";
import type { Emulator } from "#emulator/emulator.ts";
import { HOUR_MS } from "#lib/units.ts";
import { openRawBlock } from "#model/raw-block.ts";
import { isBackfilled } from "#proof/rules/plan-search.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { openEmulator, oracle, TODAY, walkDay, YESTERDAY } from "../emulator/support.ts";
import { draws } from "../support/sample.ts";
import {
  enterWatched,
  expectedRows,
  newest,
  openChangingPlatform,
  openIngest,
  storedRows,
  withoutRoute,
  ZONE,
} from "./ingest-support.ts";

const PROGRAM = fileURLToPath(new URL("./ingest-replica.ts", import.meta.url));
/** Shortly after midnight, so that the lists of two days have events. */
const NOW = Date.UTC(2026, 10, 20, 2, 10);
const DAYS = ["11-18-2026", YESTERDAY, TODAY];
/** Give the printed one to see the same kills again. */
const SEED = Number(process.env["TEST_SEED"] ?? Date.now() % 1_000_000);

/** The soak kills more often. */
const LIVES = draws(2, 6);

/** Mulberry32: whole numbers from `from` to `to`, the same for the same seed. */
function createDice(seed: number) {
  let state = seed;
  return (from: number, to: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return from + (((mixed ^ (mixed >>> 14)) >>> 0) % (to - from + 1));
  };
}

interface Replica {
  readonly child: ChildProcess;
  /** How it ended by itself; null when it was killed. */
  readonly ended: Promise<{ failures: string[] } | null>;
}

/** May put another body in the place of an answer. */
type OnAnswer = (answered: number, child: ChildProcess, body: string) => unknown;

/**
 * Starts a replica that waits at each answer of the platform until `onAnswer` returns, so that its position is known.
 */
async function startReplica(
  { emulator, database }: World,
  name: string,
  jobs: readonly ("poll" | "walk")[],
  onAnswer: OnAnswer,
): Promise<Replica> {
  let answered = 0;
  let child: ChildProcess | undefined;
  const url = await openChangingPlatform(emulator, async (body) => {
    const changed = child === undefined ? body : await onAnswer(++answered, child, body);
    return typeof changed === "string" ? changed : body;
  });
  child = fork(PROGRAM, [name, database.url, url, emulator.accessKey, String(NOW), ...jobs]);
  const started = child;
  onTestFinished(() => void started.kill("SIGKILL"));
  const told = once(child, "message").then(([message]) => message as { failures: string[] });
  const ended = once(child, "exit").then(([code]) => (code === 0 ? told : null));
  return { child, ended };
}

interface World {
  readonly emulator: Emulator;
  readonly database: MigratedDatabase;
}

async function openWorld(): Promise<World> {
  const emulator = await openEmulator({
    zones: [ZONE],
    clock: () => NOW,
    historyHours: 4,
    eventsPerSecond: draws(0.02, 0.1),
    switches: { pageSize: 25, order: SEED % 2 === 0 ? "oldest" : "newest" },
  });
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  await enterWatched(database, NOW, newest(NOW, 4));
  return { emulator, database };
}

/** Runs the jobs of a replica that nobody kills, in this process, until nothing is left to copy. */
async function finish({ emulator, database }: World): Promise<void> {
  const { poll, walk } = await openIngest(emulator, { database });
  await Promise.all([poll(), walk()]);
  await poll();
  await walk();
}

/** Expires the leases of dead processes. */
async function expireLeases({ pool }: MigratedDatabase): Promise<void> {
  await pool.query("update leases set expires_at = now() - interval '1 second' where expires_at is not null");
}

async function query<Row = Record<string, unknown>>(
  { pool }: MigratedDatabase,
  text: string,
): Promise<Row[]> {
  return (await pool.query(text)).rows as Row[];
}

/** Everything that ingest leaves behind agrees with the platform and with itself. */
async function expectComplete({ emulator, database }: World): Promise<void> {
  expect(withoutRoute(await storedRows(database))).toEqual(expectedRows(await oracle(emulator)));

  const blocks = await query<{ block: Buffer }>(database, "select block from raw_blocks");
  const kept = (await Promise.all(blocks.map(({ block }) => openRawBlock(block)))).flat().map(String);
  const shown = (await Promise.all(DAYS.map((day) => walkDay(emulator, day)))).flat();
  const listed = new Set(shown.flatMap(({ logs }) => logs ?? []).map((entry) => JSON.stringify(entry)));
  expect(kept.sort()).toEqual([...listed].sort());

  expect(
    await query(
      database,
      `select c.day::text, c.pass_result in ('full', 'short') as ended, c.pages_seen - count(p.page)::integer as holes,
         c.new_entries - coalesce(sum(p.new_entries), 0)::integer as uncounted, max(p.page) - c.pages_seen as last,
         c.full_pass_started_at is not null as proves
       from ingest_cursors c left join pages p using (zone_id, day, pass)
       group by 1, c.pass_result, c.pages_seen, c.new_entries, c.full_pass_started_at order by 1`,
    ),
  ).toEqual(
    ["2026-11-18", "2026-11-19", "2026-11-20"].map((day) => ({
      day,
      ended: true,
      holes: 0,
      uncounted: 0,
      last: -1,
      proves: true,
    })),
  );

  const hours = await readSearchedHours(database.db, ZONE, { fromMs: NOW - 80 * HOUR_MS, toMs: NOW });
  expect(isBackfilled(NOW, hours)).toBe(true);
  expect(
    await query(
      database,
      `select starts_at from coverage_windows w full join (
         select date_trunc('hour', occurred_at) as starts_at, count(*) as n from waf_events group by 1) e using (starts_at)
       where coalesce(w.stored_count, 0) <> coalesce(e.n, 0)`,
    ),
  ).toEqual([]);
  expect(
    await query(
      database,
      `select rule_id, date_trunc('minute', occurred_at) from waf_events
       except select rule_id, minute from dirty_buckets`,
    ),
  ).toEqual([]);
}

test("F1: ingest that is killed again and again in any place ends with exactly the platform's events", async () => {
  console.log(`kills follow from TEST_SEED=${SEED}`);
  const dice = createDice(SEED);
  const world = await openWorld();
  let kills = 0;
  for (let life = 0; life < LIVES; life++) {
    const killAt = dice(2, 7);
    const { ended } = await startReplica(world, `life ${life}`, ["poll", "walk"], (answered, child) => {
      // Killed before the answer, or during the transaction of the page before it.
      if (answered === killAt) child.kill("SIGKILL");
    });
    if ((await ended) === null) kills++;
    await expireLeases(world.database);
  }
  expect(kills).toBe(LIVES);
  await finish(world);
  await expectComplete(world);
});

test("F1, F5: two replicas at once, either of them killed at any time, end with exactly the platform's events", async () => {
  console.log(`kills follow from TEST_SEED=${SEED}`);
  const dice = createDice(SEED + 1);
  const world = await openWorld();
  for (let life = 0; life < draws(1, 4); life++) {
    const killAt = dice(3, 12);
    const victim = dice(0, 1);
    let answeredByBoth = 0;
    const children: ChildProcess[] = [];
    const replicas = await Promise.all(
      ["one", "other"].map((name) =>
        startReplica(world, `${name} ${life}`, ["poll", "walk"], () => {
          if (++answeredByBoth === killAt) {
            children[victim]?.kill("SIGKILL");
            return expireLeases(world.database);
          }
          return undefined;
        }),
      ),
    );
    children.push(...replicas.map(({ child }) => child));
    await Promise.all(replicas.map(({ ended }) => ended));
    await expireLeases(world.database);
  }
  await finish(world);
  await expectComplete(world);
});

/** All that ingest writes but its leases, one value per table; of the list's days those a late runner has no work on. */
function digest(database: MigratedDatabase) {
  const all = ["waf_events", "raw_blocks", "coverage_windows", "dirty_buckets"].map((name) => [name, "true"]);
  const settled = ["pages", "ingest_cursors"].map((name) => [name, "day < '2026-11-20'"]);
  const each = [...all, ...settled].map(
    ([name, part]) =>
      `select '${name}' as name, count(*), md5(string_agg(t::text, ',' order by t::text)) from ${name} t where ${part}`,
  );
  return query(database, `${each.join(" union all ")} order by 1`);
}

test.each(["poll", "walk"] as const)(
  "F6: a replica that was frozen with a page in hand writes nothing once another has taken over (%s)",
  async (job) => {
    const world = await openWorld();
    const { database } = world;
    let takeOver: (child: ChildProcess) => void = () => undefined;
    const inHand = new Promise<ChildProcess>((resolve) => {
      takeOver = resolve;
    });
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const zombie = await startReplica(world, "zombie", [job], async (answered, child, body) => {
      if (answered !== 4) return body;
      takeOver(child);
      await released;
      // No other replica has seen this event, so no other can have stored it.
      return body.replace(/"logId":"[^"]+"/, '"logId":"zombie"');
    });
    const child = await inHand;
    // The zombie waits for the answer; the three answers before it are stored.
    const stored =
      job === "walk"
        ? "select from pages"
        : "select from coverage_windows where searched_through is not null and state = 'open'";
    await vi.waitFor(async () => {
      expect((await query(database, stored)).length).toBe(3);
      const busy = `select pid from pg_stat_activity where datname = current_database() and application_name = 'zombie' and state <> 'idle'`;
      expect(await query(database, busy)).toEqual([]);
    });
    child.kill("SIGSTOP");
    release();
    const held = await query<{ name: string }>(
      database,
      `select name from leases where name like '${job === "poll" ? "poll-events" : "walk-days"}%' and holder is not null`,
    );
    expect(held).toHaveLength(1);
    await expireLeases(database);
    await finish(world);
    await expectComplete(world);
    const before = await digest(database);
    const [lease] = await query<{ fence: string }>(
      database,
      `select fence from leases where name = '${held[0]?.name}'`,
    );
    expect(Number(lease?.fence)).toBeGreaterThan(1);
    child.kill("SIGCONT");
    const ended = await zombie.ended;
    expect(ended?.failures.filter((code) => code !== "FENCE_LOST")).toEqual([]);
    expect(await digest(database)).toEqual(before);
  },
);
