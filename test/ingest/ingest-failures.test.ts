import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { createPollEventsJob } from "#jobs/ingest/poll-events.ts";
import { HOUR_MS } from "#lib/units.ts";
import { openRawBlock } from "#model/raw-block.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle, TODAY, walkDay, YESTERDAY } from "../emulator/support.ts";
import {
  expectedRows,
  openChangingPlatform,
  openIngest,
  silent,
  storedRows,
  withoutRoute,
  ZONE,
} from "./ingest-support.ts";

const database = await shareDatabase();
const HISTORY = { zones: [ZONE], historyHours: 5, eventsPerSecond: 0.02 } as const;
/** The zone was watched before the history began. */
const WATCHED = { database, openHours: 5 } as const;

test("F41: an hour that the platform cannot search does not keep the hours behind it from being copied", async () => {
  const emulator = await openEmulator(HISTORY);
  const broken = Math.floor((NOW - 3 * HOUR_MS) / HOUR_MS) * HOUR_MS;
  let isBroken = true;
  const url = await openChangingPlatform(emulator, (body, _path, asked) =>
    isBroken && asked.includes(`"from":${broken},`) ? null : body,
  );
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await expect(ingest.poll()).rejects.toMatchObject({ code: "EDGE_UNAVAILABLE" });
  const all = expectedRows(await oracle(emulator)).map(({ log_id, at }) => ({ log_id, at }));
  const ids = async () => (await storedRows(ingest.database)).map(({ log_id }) => log_id);
  const others = all.filter(({ at }) => at < broken || at >= broken + HOUR_MS);
  expect(others.length).toBeLessThan(all.length);
  expect(await ids()).toEqual(others.map(({ log_id }) => log_id));
  isBroken = false;
  await ingest.poll();
  expect(await ids()).toEqual(all.map(({ log_id }) => log_id));
});

test("I9: a platform that answers nothing is not asked for every hour", async () => {
  const emulator = await openEmulator(HISTORY);
  const asked = new Set<string>();
  const url = await openChangingPlatform(emulator, (_body, _path, request) => {
    asked.add(request);
    return null;
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await expect(ingest.poll()).rejects.toMatchObject({ code: "EDGE_UNAVAILABLE" });
  expect(asked.size).toBe(2);
});

test("F41: a day that the platform cannot list does not keep today's list from being read", async () => {
  const emulator = await openEmulator(HISTORY);
  const url = await openChangingPlatform(emulator, (body, path) =>
    path.includes("/11-19-2026") ? null : body,
  );
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await expect(ingest.walk()).rejects.toMatchObject({ code: "EDGE_UNAVAILABLE" });
  const today = expectedRows(await oracle(emulator)).filter(({ at }) => at >= Date.UTC(2026, 10, 20));
  expect((await storedRows(ingest.database)).map(({ log_id }) => log_id)).toEqual(
    today.map(({ log_id }) => log_id),
  );
});

test("F47: a token that the platform answers with nothing but 500s is given up after an hour, not for ever", async () => {
  const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 50 } });
  const tokens = new Set<string>();
  let isRestarted = false;
  const url = await openChangingPlatform(emulator, (body, path) => {
    const [, token] = /\/11-20-2026\/(.+)$/.exec(path) ?? [];
    if (token === undefined) return body;
    if (!isRestarted) tokens.add(token);
    return tokens.has(token) && tokens.size > 2 ? null : body;
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  const cursor = async () => {
    const { rows } = await ingest.database.pool.query<{ pass: number; pass_result: string | null }>(
      "select pass, pass_result from ingest_cursors where day = '2026-11-20'",
    );
    return rows[0];
  };
  await expect(ingest.walk()).rejects.toMatchObject({ code: "EDGE_UNAVAILABLE" });
  isRestarted = true;
  await expect(ingest.walk()).rejects.toMatchObject({ code: "EDGE_UNAVAILABLE" });
  expect(await cursor()).toEqual({ pass: 1, pass_result: null });
  emulator.advance(HOUR_MS);
  await ingest.walk();
  expect(await cursor()).toEqual({ pass: 1, pass_result: "token_rejected" });
  await ingest.walk();
  expect(await cursor()).toEqual({ pass: 2, pass_result: "full" });
  const ids = (await storedRows(ingest.database)).map(({ log_id }) => log_id);
  expect(ids).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
});

test("a busy hour whose parts fail while a page is still on its way fails the run, and nothing goes unheard", async () => {
  const unheard: unknown[] = [];
  const note = (reason: unknown) => void unheard.push(reason);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  let whole: number | undefined;
  const job = createPollEventsJob({
    database,
    partitions: createPartitionKeeper(database),
    edge: {
      async searchEventLogs({ request }) {
        whole ??= request.to - request.from;
        if (request.to - request.from < whole) throw new Error("the part failed");
        if (request.page === 1) await turns(5);
        const page = { rows: [{}], groups: [], total: 20_000, totalPages: 40, page: request.page ?? 0 };
        return {
          page: { ...page, errorResponse: null },
          body: Buffer.from(`{"rows":[{}]}`),
          requestId: null,
        };
      },
    },
    clock: () => NOW,
    log: silent,
    observer: { pageStored: () => undefined },
    freshMs: 30_000,
    overlapMs: 180_000,
    settleMs: 900_000,
    afterPage: () => undefined,
  });
  const polling = job.run({ zoneId: ZONE } as never, new AbortController().signal);
  await expect(polling).rejects.toThrow("the part failed");
  await turns(2);
  expect(unheard).toEqual([]);
});

test.each(["in the next day's list", "in both days' lists"])(
  "F10: events of the last minutes before midnight that are shown %s are stored once, in their own day",
  async (place) => {
    const emulator = await openEmulator({ zones: [ZONE], historyHours: 17, eventsPerSecond: 0.02 });
    const midnight = Date.UTC(2026, 10, 20);
    const isEdge = (entry: { timestamp: number }) => entry.timestamp >= midnight - 5 * 60_000;
    const yesterday = (await walkDay(emulator, YESTERDAY)).flatMap(({ logs }) => logs ?? []);
    const edge = yesterday.filter(isEdge);
    expect(edge.length).toBeGreaterThan(2);
    const url = await openChangingPlatform(emulator, (body, path) => {
      const page = JSON.parse(body) as { logs: { timestamp: number }[] };
      if (path.includes(`/${YESTERDAY}`) && place.includes("next"))
        page.logs = page.logs.filter((entry) => !isEdge(entry));
      if (path.endsWith(`/${TODAY}`)) page.logs = [...edge, ...page.logs];
      return JSON.stringify(page);
    });
    const ingest = await openIngest(emulator, { database, url });
    await ingest.walk();
    await ingest.walk();
    const ids = (await storedRows(ingest.database)).map(({ log_id }) => log_id);
    expect(ids).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
    const { rows } = await ingest.database.pool.query<{ block: Buffer }>(
      "select block from raw_blocks where day = '2026-11-19'",
    );
    const kept = (await Promise.all(rows.map(({ block }) => openRawBlock(block)))).flat().map(String);
    expect(kept.sort()).toEqual(yesterday.map((entry) => JSON.stringify(entry)).sort());
  },
);

test("F30: ingest whose database connections are cut again and again ends with every event", async () => {
  const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 20 } });
  const others = createDatabase({
    url: database.url,
    max: 1,
    applicationName: "cutter",
    onError: () => undefined,
  });
  onTestFinished(() => others.close());
  const errors = database.errors.length;
  let answered = 0;
  let cuts = 0;
  const url = await openChangingPlatform(emulator, async (body) => {
    if (++answered % 5 !== 0 || cuts === 4) return body;
    cuts++;
    await others.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
    return body;
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  let isDone = false;
  for (let run = 0; run < 10 && !isDone; run++) {
    const results = await Promise.allSettled([ingest.poll(), ingest.walk()]);
    isDone = results.every(({ status }) => status === "fulfilled") && cuts === 4;
    await others.pool.query("update leases set expires_at = now() - interval '1 second'");
  }
  expect(isDone).toBe(true);
  await ingest.walk();
  expect(withoutRoute(await storedRows(database))).toEqual(expectedRows(await oracle(emulator)));
  expect(database.errors.length).toBeGreaterThan(errors);
});
