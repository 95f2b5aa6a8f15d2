import { expect, test } from "vitest";
import type { Emulator, EmulatorOptions } from "#emulator/emulator.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle } from "../emulator/support.ts";
import {
  expectedRows,
  type IngestTest,
  openChangingPlatform,
  openIngest,
  storedRows,
} from "./ingest-support.ts";

const database = await shareDatabase();
const PAGE_SIZE = 10;

/** The list alone brings the events, so that every event that a pass misses is missing in the table. */
async function openWorld(options: EmulatorOptions = {}) {
  const { switches, ...others } = options;
  const emulator = await openEmulator({
    zones: [101],
    historyHours: 1,
    eventsPerSecond: 0.03,
    lateShare: 0,
    ...others,
    switches: { pageSize: PAGE_SIZE, ...switches },
  });
  const asked: (string | null)[] = [];
  const hidden = new Set<string>();
  const stop = { afterPages: Number.POSITIVE_INFINITY, controller: new AbortController() };
  const url = await openChangingPlatform(emulator, (body, path) => {
    const [, token] = /\/11-20-2026(?:\/(.+))?$/.exec(path) ?? [];
    if (!path.includes("/11-20-2026")) return body;
    asked.push(token ?? null);
    if (asked.length >= stop.afterPages) stop.controller.abort();
    if (hidden.size === 0) return body;
    const page = JSON.parse(body) as { logs: { logId: string }[] };
    return JSON.stringify({ ...page, logs: page.logs.filter(({ logId }) => !hidden.has(logId)) });
  });
  const ingest = await openIngest(emulator, { database, url });
  return { emulator, ingest, url, asked, hidden, stop };
}

async function readCursor({ database }: IngestTest) {
  const { rows } = await database.pool.query<{
    pass_result: string | null;
    began_at_tail: boolean;
    tail_token: string | null;
    pass: number;
    full_at: number;
  }>(
    `select pass_result, began_at_tail, tail_token, pass, extract(epoch from full_pass_started_at)::float8 * 1000 as full_at
     from ingest_cursors where day = '2026-11-20'`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error("no pass has begun");
  return row;
}

async function expectAllStored(emulator: Emulator, { database }: IngestTest): Promise<void> {
  const stored = (await storedRows(database)).map(({ log_id }) => log_id);
  expect(stored).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
}

async function readListLooks({ database }: IngestTest) {
  const { rows } = await database.pool.query<{ at: string }>(
    "select looks->'list'->>'at' as at from coverage_windows where looks ? 'list' order by starts_at",
  );
  return rows.map(({ at }) => Number(at));
}

test("short passes over a list that comes oldest first read only its last pages, and are no evidence", async () => {
  const { emulator, ingest, url, asked } = await openWorld();
  const second = await openIngest(emulator, { database, url });
  await ingest.walk();
  expect(asked.length).toBeGreaterThan(8);
  const looks = await readListLooks(ingest);
  expect(looks.length).toBeGreaterThan(2);
  for (let minute = 4; minute <= 12; minute += 4) {
    emulator.advance(4 * MINUTE_MS);
    asked.length = 0;
    await Promise.all([ingest.walk(), second.walk()]);
    expect(asked).not.toEqual([]);
    expect(asked.every((token) => token !== null)).toBe(true);
    // The entries of a quarter of an hour, and new ones: about four pages.
    expect(asked.length).toBeLessThanOrEqual(7);
    await expectAllStored(emulator, ingest);
  }
  const cursor = await readCursor(ingest);
  expect(cursor).toMatchObject({ pass_result: "short", began_at_tail: true, full_at: NOW });
  // New events have crossed the border of a page, and the tail has followed.
  const { rows } = await ingest.database.pool.query<{ n: number }>(
    "select count(*)::integer as n from pages where day = '2026-11-20' and pass > 1 and page > 0",
  );
  expect(rows[0]?.n).toBeGreaterThan(0);
  expect(await readListLooks(ingest)).toEqual(looks);

  emulator.advance(10 * MINUTE_MS);
  asked.length = 0;
  await ingest.walk();
  expect(asked.length).toBeGreaterThan(8);
  expect(asked[0]).toBeNull();
  expect(await readCursor(ingest)).toMatchObject({ pass_result: "full", began_at_tail: false });
  await expectAllStored(emulator, ingest);
});

test.each<[string, EmulatorOptions]>([
  ["comes newest first", { switches: { order: "newest" } }],
  ["has one page only", { switches: { pageSize: 10_000 } }],
])("a short pass over a list that %s begins at the first page", async (_what, options) => {
  const { emulator, ingest, asked } = await openWorld(options);
  await ingest.walk();
  for (let pass = 0; pass < 2; pass++) {
    emulator.advance(2 * MINUTE_MS);
    asked.length = 0;
    await ingest.walk();
    expect(asked[0]).toBeNull();
    expect(await readCursor(ingest)).toMatchObject({ began_at_tail: false, tail_token: null });
  }
  await expectAllStored(emulator, ingest);
});

test("after the list has changed its order, the next full pass ends the passes that begin at its last page", async () => {
  const { emulator, ingest, asked } = await openWorld();
  await ingest.walk();
  expect((await readCursor(ingest)).tail_token).not.toBeNull();
  emulator.setSwitches({ order: "newest" });
  emulator.advance(16 * MINUTE_MS);
  await ingest.walk();
  expect(await readCursor(ingest)).toMatchObject({ pass_result: "full", tail_token: null });
  emulator.advance(2 * MINUTE_MS);
  asked.length = 0;
  await ingest.walk();
  expect(asked[0]).toBeNull();
  await expectAllStored(emulator, ingest);
});

test("a refused token of the last page is deleted, and the list is read from its first page", async () => {
  const { emulator, ingest, asked } = await openWorld({ switches: { tokenLifetimeMs: 90_000 } });
  await ingest.walk();
  emulator.advance(2 * MINUTE_MS);
  asked.length = 0;
  await ingest.walk();
  expect(asked).toHaveLength(1);
  expect(await readCursor(ingest)).toMatchObject({ pass_result: "token_rejected", tail_token: null });
  await ingest.walk();
  expect(asked[1]).toBeNull();
  const cursor = await readCursor(ingest);
  expect(cursor).toMatchObject({ pass_result: "full", began_at_tail: false });
  expect(cursor.tail_token).not.toBeNull();
  await expectAllStored(emulator, ingest);
});

test("an event that appears in the middle of the list is found by the next full pass", async () => {
  const { emulator, ingest, hidden } = await openWorld();
  const events = expectedRows(await oracle(emulator));
  const late = events[Math.floor(events.length / 2)]?.log_id ?? "";
  hidden.add(late);
  await ingest.walk();
  hidden.clear();
  const isStored = async () => (await storedRows(ingest.database)).some(({ log_id }) => log_id === late);
  emulator.advance(2 * MINUTE_MS);
  await ingest.walk();
  expect(await readCursor(ingest)).toMatchObject({ began_at_tail: true });
  expect(await isStored()).toBe(false);
  emulator.advance(14 * MINUTE_MS);
  await ingest.walk();
  expect(await isStored()).toBe(true);
  await expectAllStored(emulator, ingest);
});

test("a pass that began at the last page is a short pass, also when another replica ends it", async () => {
  const { emulator, ingest, asked, stop } = await openWorld({ eventsPerSecond: 0.1, historyHours: 0.5 });
  await ingest.walk();
  const looks = await readListLooks(ingest);
  emulator.advance(10 * MINUTE_MS);
  asked.length = 0;
  stop.afterPages = 2;
  await ingest.walk(stop.controller.signal);
  expect(await readCursor(ingest)).toMatchObject({ pass: 2, pass_result: null, began_at_tail: true });
  const second = await openIngest(emulator, { database: ingest.database });
  await second.walk();
  expect(await readCursor(ingest)).toMatchObject({
    pass: 2,
    pass_result: "short",
    began_at_tail: true,
    full_at: NOW,
  });
  expect(await readListLooks(ingest)).toEqual(looks);
  await expectAllStored(emulator, ingest);
});
