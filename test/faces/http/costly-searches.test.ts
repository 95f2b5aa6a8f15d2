import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { openAdmissionQueue } from "#app/list-routes.ts";
import { closeHttp } from "#app/open-http.ts";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import { createDatabase } from "#db/client.ts";
import { areWritersAtWork } from "#db/health/server-facts.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { createAdmissionQueue, createRunInPlace } from "#faces/http/limits/admission-queue.ts";
import { createRefuseCostly } from "#faces/http/limits/refuse.ts";
import type { Role } from "#model/kinds.ts";
import { archiveDay, openTestFolder } from "../../archive/archive-folder.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { makePipe } from "../../support/make-pipe.ts";
import { call, makeKey, type SearchOptions, startArchive } from "./start-archive.ts";

const ZONE = 101;
const BIG_DAY = "2026-11-18";
const SMALL_DAY = "2026-11-17";
const ARCHIVED_DAY = "2026-11-10";
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
async function openArchive(parts: Partial<SearchOptions> = {}) {
  const queries = createDatabase({
    url: database.url,
    max: 6,
    applicationName: SESSIONS,
    onError: () => undefined,
    lockTimeoutMs: PATIENCE_MS,
    statementTimeoutMs: PATIENCE_MS,
  });
  onTestFinished(() => queries.close());
  const queue = openAdmissionQueue(queries, { maxWaitMs: PATIENCE_MS, cpuMsPerMinute: PATIENCE_MS });
  const more = {
    queries,
    queue,
    refuseCostly: createRefuseCostly(1e9),
    clock: () => NOW,
    zoneIds: [ZONE],
    isIngestBusy: async () => false,
    ...parts,
  };
  const { app, url } = await startArchive(database.url, {}, {}, more);
  const ask = (key: string, day: string, init: RequestInit = {}) => {
    const from = Date.parse(`${day}T00:00:00Z`);
    const body = JSON.stringify({ from, to: from + 3_600_000, groupBy: ["ip"] });
    return call(url, `/shield/event-logs/${ZONE}/search`, key, { method: "POST", body, ...init });
  };
  const callZone = (key: string, path: string, init: RequestInit = {}) =>
    call(url, `/shield/event-logs/${ZONE}${path}`, key, init);
  return { app, ask, call: callZone, queue };
}

/** Holds up every search of a day until it is let go, as one does that takes long. */
async function holdDay(day: string): Promise<() => Promise<void>> {
  const client = await database.pool.connect();
  await client.query("begin");
  await client.query(`lock table waf_events_${day.replaceAll("-", "")} in access exclusive mode`);
  let isBlocking = true;
  const letGo = async () => {
    if (!isBlocking) return;
    isBlocking = false;
    await client.query("rollback");
    client.release();
  };
  onTestFinished(letGo);
  return letGo;
}

async function countBlocked(): Promise<number> {
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

const newKey = async (role: Role = "reader") => (await makeKey(database, role)).key;

describe("expensive searches take turns", () => {
  test("cheap searches of a key are answered while its expensive ones wait without a connection", async () => {
    const { ask, queue } = await openArchive();
    const [key, other] = [await newKey(), await newKey()];
    const letGo = await holdDay(BIG_DAY);
    const costly = Array.from({ length: 12 }, () => ask(key, BIG_DAY));
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 1, waiting: 11 }));
    await vi.waitFor(async () => expect(await countBlocked()).toBe(1));
    const refused = await ask(key, BIG_DAY);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);

    for (let n = 0; n < 5; n++) expect((await ask(key, SMALL_DAY)).status).toBe(200);
    costly.push(ask(other, BIG_DAY));
    await vi.waitFor(async () => expect(await countBlocked()).toBe(2));
    expect(await countBusy()).toBe(2);

    await letGo();
    const answers = await Promise.all(costly);
    expect(answers.map(({ status }) => status)).toEqual(costly.map(() => 200));
  });

  test("a key whose statements take every place that it can get keeps no other key from pages, lists, groups and exports", async () => {
    const { files, folder } = await openTestFolder();
    const { ask, call, queue } = await openArchive({ files });
    const pipe = path.join(folder, "scratch", "pipe");
    makePipe(pipe);
    const runInPlace = createRunInPlace({ queries: database, files, queue, isIngestBusy: async () => false });
    const leaving = new AbortController();
    onTestFinished(() => leaving.abort());
    // DuckDB waits in these statements until something is written.
    const sql = `select * from read_csv('${pipe}', columns = {'a': 'VARCHAR'})`;
    const hostile = (["quick", "long"] as const).flatMap((kind) =>
      Array.from({ length: 4 }, () =>
        runInPlace({ caller: { keyId: "hostile" } } as never, { kind, signal: leaving.signal }, (deps) =>
          deps.files.read([], [{ sql, values: [] }], leaving.signal),
        ),
      ),
    );
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 3, waiting: 5 }));

    const key = await newKey("exporter");
    const span = { from: Date.parse(SMALL_DAY), to: Date.parse(SMALL_DAY) + 3_600_000 };
    const post = (what: string) => call(key, `/${what}`, { method: "POST", body: JSON.stringify(span) });
    const answers = [
      await post("search"),
      await ask(key, SMALL_DAY),
      await ask(key, BIG_DAY),
      await post("export"),
    ];
    answers.push(await call(key, "/11-17-2026"));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);

    leaving.abort();
    await Promise.allSettled(hostile);
    // The places are free when DuckDB has ended the statements, not when their callers have gone.
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 0, waiting: 0 }), 20_000);
  });

  test("no transaction is open while DuckDB works for a search", async () => {
    const folder = await openTestFolder();
    await createPartitionKeeper(database).withDays([ARCHIVED_DAY], async () => undefined);
    await database.pool.query(
      `insert into waf_events (occurred_at, zone_id, log_id, route, rule_id) values ($1, $2, 'one', 'search', '1')`,
      [`${ARCHIVED_DAY}T00:30:00Z`, ZONE],
    );
    await archiveDay(database, folder, ARCHIVED_DAY);
    const busy: number[] = [];
    const watch = (reader: ArchiveReader): ArchiveReader => ({
      ...reader,
      inPlace: (place) => watch(reader.inPlace(place)),
      async read(...given) {
        busy.push(await countBusy());
        return reader.read(...given);
      },
    });
    const { call } = await openArchive({ files: watch(folder.files) });
    const from = Date.parse(ARCHIVED_DAY) + 1;
    const key = await newKey();
    for (const more of [{}, { query: "1" }, { groupBy: ["country"] }]) {
      const body = JSON.stringify({ from, to: from + 86_400_000, ...more });
      const answer = await call(key, "/search", { method: "POST", body });
      expect(await answer.json()).toMatchObject({ total: 1 });
    }
    expect(busy.length).toBeGreaterThan(3);
    expect(busy).toEqual(busy.map(() => 0));
  });

  test("a client that disconnects frees its place, whether its search was running or waiting", async () => {
    const { ask, queue } = await openArchive();
    const key = await newKey();
    const letGo = await holdDay(BIG_DAY);
    const [working, inLine] = [new AbortController(), new AbortController()];
    const gone = [ask(key, BIG_DAY, { signal: working.signal })];
    await vi.waitFor(async () => expect(await countBlocked()).toBe(1));
    gone.push(ask(key, BIG_DAY, { signal: inLine.signal }));
    const last = ask(key, BIG_DAY);
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 1, waiting: 2 }));
    inLine.abort();
    working.abort();
    expect((await Promise.allSettled(gone)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await vi.waitFor(() => expect(queue.counts()).toEqual({ working: 1, waiting: 0 }));
    await vi.waitFor(async () => expect(await countBlocked()).toBe(1));

    await letGo();
    expect((await last).status).toBe(200);
  });
});

test.each([
  { isIngestBusy: true, kind: "long", parallelWorkers: 0 },
  { isIngestBusy: false, kind: "long", parallelWorkers: undefined },
  { isIngestBusy: true, kind: "quick", parallelWorkers: undefined },
] as const)(
  "$kind work has $parallelWorkers parallel workers if ingest is busy: $isIngestBusy",
  async (given) => {
    const perKey = { quick: 1, long: 1 } satisfies Record<"quick" | "long", number>;
    const queue = createAdmissionQueue({
      places: { quick: 2, long: 2 },
      perKey,
      maxWaitMs: 1,
      cpuMsPerMinute: 60_000,
    });
    const runInPlace = createRunInPlace({
      queries: database,
      files: (await openTestFolder()).files,
      queue,
      isIngestBusy: async () => given.isIngestBusy,
    });
    const work = { kind: given.kind, signal: new AbortController().signal };
    const seen = await runInPlace({ caller: { keyId: "a" } } as never, work, async ({ queries }) => {
      expect(queue.counts()).toEqual({ working: 1, waiting: 0 });
      return queries.parallelWorkers;
    });

    expect(seen).toBe(given.parallelWorkers);
    expect(queue.counts()).toEqual({ working: 0, waiting: 0 });
  },
);

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
  await vi.waitFor(async () => expect(await countBlocked()).toBe(1));
  await closeHttp(app, 0);

  expect(await asked).toBe("cut off");
  await vi.waitFor(async () => expect(await countBlocked()).toBe(0));
});
