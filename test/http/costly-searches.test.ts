import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createDatabase } from "../../db/client.ts";
import { areWritersAtWork } from "../../db/ingest/writers.ts";
import { createPartitionKeeper } from "../../db/postgres/partition-keeper.ts";
import { inSearchTransaction } from "../../db/search/search-transaction.ts";
import { closeHttp } from "../../src/app/close-http.ts";
import { openAdmissionQueue } from "../../src/app/open-admission-queue.ts";
import { createAdmissionQueue } from "../../src/http/limits/admission-queue.ts";
import { createRefuseCostly } from "../../src/http/limits/refuse-costly.ts";
import { createTakeTurn } from "../../src/http/limits/take-turn.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { call, makeKey, startArchive } from "./start-archive.ts";

const ZONE = 101;
const BIG_DAY = "2026-11-18";
const SMALL_DAY = "2026-11-17";
const NOW = Date.parse("2026-11-20T12:00:00Z");
const SESSIONS = "costly archive";
/** Longer than any test: what waits here does so for the test. */
const PATIENCE_MS = 600_000;
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
  await createPartitionKeeper(database).withDays([BIG_DAY, SMALL_DAY], async () => undefined);
  // These counts decide the estimated cost of a search; a lock on its day decides how long it takes.
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, stored_count, state)
     values ($1, $2, 5000000, 'open'), ($1, $3, 10, 'open')`,
    [ZONE, `${BIG_DAY}T00:00:00Z`, `${SMALL_DAY}T00:00:00Z`],
  );
});
afterAll(() => database.drop());
beforeEach(() => database.pool.query("truncate api_keys"));

/** The archive over HTTP with six connections, as by default. */
async function openArchive(isIngestBusy = false) {
  const archive = createDatabase({
    url: database.url,
    max: 6,
    applicationName: SESSIONS,
    onError: () => undefined,
    lockTimeoutMs: PATIENCE_MS,
    statementTimeoutMs: PATIENCE_MS,
  });
  onTestFinished(() => archive.close());
  const queue = openAdmissionQueue(archive, PATIENCE_MS);
  const more = {
    archive,
    queue,
    refuseCostly: createRefuseCostly(1e9),
    clock: () => NOW,
    zoneIds: [ZONE],
    isIngestBusy: async () => isIngestBusy,
  };
  const { app, url } = await startArchive(database.url, {}, {}, more);
  const ask = (key: string, day: string, init: RequestInit = {}) => {
    const from = Date.parse(`${day}T00:00:00Z`);
    const body = JSON.stringify({ from, to: from + 3_600_000, groupBy: ["ip"] });
    return call(url, `/shield/event-logs/${ZONE}/search`, key, { method: "POST", body, ...init });
  };
  return { app, ask, queue };
}

/** Holds up every search of a day until it is let go, as one does that takes long. */
async function holdDay(day: string): Promise<() => Promise<void>> {
  const client = await database.pool.connect();
  await client.query("begin");
  await client.query(`lock table waf_events_${day.replaceAll("-", "")} in access exclusive mode`);
  let isHeld = true;
  const letGo = async () => {
    if (!isHeld) return;
    isHeld = false;
    await client.query("rollback");
    client.release();
  };
  onTestFinished(letGo);
  return letGo;
}

async function countHeldUp(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity
     where application_name = $1 and wait_event_type = 'Lock' and datname = current_database()`,
    [SESSIONS],
  );
  return rows[0]?.count ?? 0;
}

async function countBusy(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity
     where application_name = $1 and state <> 'idle' and datname = current_database()`,
    [SESSIONS],
  );
  return rows[0]?.count ?? 0;
}

const newKey = async () => (await makeKey(database, "reader")).key;

describe("expensive searches take turns", () => {
  test("cheap searches of a key are answered while its expensive ones wait without a connection", async () => {
    const { ask, queue } = await openArchive();
    const [key, other] = [await newKey(), await newKey()];
    const letGo = await holdDay(BIG_DAY);
    const costly = [1, 2, 3, 4].map(() => ask(key, BIG_DAY));
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 1, waiting: 3 }));
    await vi.waitFor(async () => expect(await countHeldUp()).toBe(1));
    const refused = await ask(key, BIG_DAY);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);

    for (let n = 0; n < 5; n++) expect((await ask(key, SMALL_DAY)).status).toBe(200);
    costly.push(ask(other, BIG_DAY));
    await vi.waitFor(async () => expect(await countHeldUp()).toBe(2));
    expect(await countBusy()).toBe(2);

    await letGo();
    const answers = await Promise.all(costly);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  });

  test("while ingest is busy, one expensive search runs at a time, and cheap ones run at once", async () => {
    const { ask, queue } = await openArchive(true);
    const [key, other] = [await newKey(), await newKey()];
    const letGo = await holdDay(BIG_DAY);
    const first = ask(key, BIG_DAY);
    await vi.waitFor(async () => expect(await countHeldUp()).toBe(1));
    const second = ask(other, BIG_DAY);
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 1, waiting: 1 }));
    expect((await ask(other, SMALL_DAY)).status).toBe(200);
    expect(await countBusy()).toBe(1);

    await letGo();
    expect((await first).status).toBe(200);
    expect((await second).status).toBe(200);
  });

  test("a client that disconnects frees its place, whether its search was running or waiting", async () => {
    const { ask, queue } = await openArchive(true);
    const [key, other] = [await newKey(), await newKey()];
    const letGo = await holdDay(BIG_DAY);
    const [working, inLine] = [new AbortController(), new AbortController()];
    const gone = [ask(key, BIG_DAY, { signal: working.signal })];
    await vi.waitFor(async () => expect(await countHeldUp()).toBe(1));
    gone.push(ask(key, BIG_DAY, { signal: inLine.signal }));
    const last = ask(other, BIG_DAY);
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 1, waiting: 2 }));
    inLine.abort();
    working.abort();
    expect((await Promise.allSettled(gone)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 1, waiting: 0 }));
    await vi.waitFor(async () => expect(await countHeldUp()).toBe(1));

    await letGo();
    expect((await last).status).toBe(200);
  });
});

test.each([
  { isIngestBusy: true, rows: 20_001, parallelWorkers: 0 },
  { isIngestBusy: false, rows: 20_001, parallelWorkers: undefined },
  { isIngestBusy: true, rows: 20_000, parallelWorkers: undefined },
])("of $rows events while ingest is at work ($isIngestBusy): $parallelWorkers", async (given) => {
  const queue = createAdmissionQueue({ places: 1, perKey: 1, waiting: 1, maxWaitMs: 1 });
  const takeTurn = createTakeTurn({
    archive: database,
    queue,
    isIngestBusy: async () => given.isIngestBusy,
  });
  const request = { caller: { keyId: "a" }, leavePlace: null } as never;
  const turn = await takeTurn(request, given.rows, new AbortController().signal);

  expect(turn.archive.parallelWorkers).toBe(given.parallelWorkers);
  turn.leave();
  expect(queue.counts()).toEqual({ working: 0, waiting: 0 });
});

test("a search uses the given number of database processes, and several by default", async () => {
  const read = (parallelWorkers?: number) =>
    inSearchTransaction(
      { ...database, ...(parallelWorkers === undefined ? {} : { parallelWorkers }) },
      async (tx) => (await tx.execute("show max_parallel_workers_per_gather")).rows[0],
    );

  expect(await read(0)).toEqual({ max_parallel_workers_per_gather: "0" });
  expect(await read()).toEqual({ max_parallel_workers_per_gather: "4" });
});

test("ingest counts as busy exactly while a session of that name is in a transaction", async () => {
  const name = `writers of ${database.url.slice(-12)}`;
  const writers = createDatabase({
    url: database.url,
    max: 1,
    applicationName: name,
    onError: () => undefined,
  });
  onTestFinished(() => writers.close());
  const client = await writers.pool.connect();
  expect(await areWritersAtWork(database.db, [name])).toBe(false);
  await client.query("begin");
  expect(await areWritersAtWork(database.db, ["another", name])).toBe(true);
  expect(await areWritersAtWork(database.db, ["another"])).toBe(false);
  await client.query("rollback");
  client.release();

  await expect.poll(() => areWritersAtWork(database.db, [name])).toBe(false);
});

test("a stop cancels a search that outlasts the grace period, in the database as well", async () => {
  const { app, ask } = await openArchive();
  const key = await newKey();
  await holdDay(BIG_DAY);
  const asked = ask(key, BIG_DAY).then(
    () => "answered",
    () => "cut off",
  );
  await vi.waitFor(async () => expect(await countHeldUp()).toBe(1));
  await closeHttp(app, 0);

  expect(await asked).toBe("cut off");
  await vi.waitFor(async () => expect(await countHeldUp()).toBe(0));
});
