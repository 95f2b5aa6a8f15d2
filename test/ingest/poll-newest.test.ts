import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { isRising } from "#db/proof/platform-health.ts";
import { platformHealth } from "#db/schema/coverage.ts";
import type { Emulator } from "#emulator/emulator.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { openEmulator, oracle } from "../emulator/support.ts";
import {
  expectedRows,
  type IngestTest,
  openChangingPlatform,
  openIngest,
  storedRows,
  withoutRoute,
  ZONE,
} from "./ingest-support.ts";

/** Beyond the turn of a minute, far from that of an hour. */
const NOW = Date.UTC(2026, 10, 20, 15, 30, 2);
const database = await shareDatabase();
/** Of polls every ten seconds. */
const FRESH = { freshMs: 5_000, openHours: 3 };

/** An emulator with an event about every minute, none of them late, and the jobs after a whole poll. */
async function openSlow(options: { attacks?: string[] } = {}) {
  const emulator = await openEmulator({ clock: () => NOW, eventsPerSecond: 0.03, lateShare: 0, ...options });
  const ingest = await openIngest(emulator, { ...FRESH, database });
  // The first poll brings the history, the second one is the first of a zone that is known.
  await ingest.poll();
  emulator.advance(10_000);
  await ingest.poll();
  return { emulator, ingest };
}

/** Counts the statements of a call, those that begin and end a transaction included. */
async function countStatements(run: () => Promise<unknown>): Promise<number> {
  const query = vi.spyOn(pg.Client.prototype, "query");
  onTestFinished(() => query.mockRestore());
  await run();
  const { length } = query.mock.calls;
  query.mockRestore();
  return length;
}

const searches = (emulator: Emulator) => emulator.requests().counts["search-event-logs"] ?? 0;

async function readThrough({ database }: IngestTest): Promise<number> {
  const { rows } = await database.pool.query<{ at: number }>(
    "select (extract(epoch from max(searched_through)) * 1000)::float8 as at from coverage_windows",
  );
  return rows[0]?.at ?? 0;
}

async function readIds({ database }: IngestTest): Promise<string[]> {
  return (await storedRows(database)).map(({ log_id }) => log_id);
}

async function knownIds(emulator: Emulator): Promise<string[]> {
  return expectedRows(await oracle(emulator)).map(({ log_id }) => log_id);
}

test("a poll without news between two whole polls is one request and one statement, and moves the cursor", async () => {
  const { emulator, ingest } = await openSlow();
  const known = await knownIds(emulator);
  const costs: [boolean, number, number, number][] = [];
  for (let step = 1; step <= 9; step += 1) {
    emulator.advance(10_000);
    const [before, stored] = [searches(emulator), await readIds(ingest)];
    const statements = await countStatements(() => ingest.poll());
    const hasNews = (await readIds(ingest)).length > stored.length;
    costs.push([hasNews, step % 3, searches(emulator) - before, statements]);
    expect(await readThrough(ingest)).toBe(emulator.now());
  }
  const quiet = costs.filter(([hasNews, place]) => !hasNews && place > 0);
  expect(quiet.length).toBeGreaterThan(2);
  expect(quiet.map(([, , ...cost]) => cost)).toEqual(quiet.map(() => [1, 1]));
  const whole = costs.filter(([, place]) => place === 0);
  expect(whole.every(([, , requests, statements]) => requests === 1 && statements > 8)).toBe(true);
  expect(await readIds(ingest)).toEqual(await knownIds(emulator));
  expect((await knownIds(emulator)).length).toBeGreaterThan(known.length);
});

test("polls every ten seconds store every event that polls every half a minute do, late ones included", async () => {
  const options = { zones: [ZONE], clock: () => NOW, historyHours: 1, eventsPerSecond: 0.1, lateShare: 0.3 };
  const [one, other] = [await openEmulator(options), await openEmulator(options)];
  const [often, seldom] = [
    await openIngest(one, { ...FRESH, database }),
    await openIngest(other, { ...FRESH, freshMs: 15_000 }),
  ];
  for (let step = 0; step < 18; step += 1) {
    await often.poll();
    if (step % 3 === 0) await seldom.poll();
    one.advance(10_000);
    other.advance(10_000);
  }
  for (const { emulator, ingest } of [
    { emulator: one, ingest: often },
    { emulator: other, ingest: seldom },
  ]) {
    emulator.advance(60_000);
    await ingest.poll();
  }
  const found = new Set(await readIds(often));
  expect(found.size).toBeGreaterThan(300);
  expect((await readIds(seldom)).filter((id) => !found.has(id))).toEqual([]);
  const rows = new Map(withoutRoute(await storedRows(seldom.database)).map((row) => [row.log_id, row]));
  const both = withoutRoute(await storedRows(often.database)).filter(({ log_id }) => rows.has(log_id));
  expect(both).toEqual([...rows.values()]);
  const { rows: hours } = await often.database.pool.query<{ counted: number; stored: number }>(
    `select sum(stored_count)::int as counted, (select count(*)::int from waf_events) as stored from coverage_windows`,
  );
  expect(hours[0]?.counted).toBe(hours[0]?.stored);
});

test("a cursor that was moved back is not moved on by a short poll, and the next poll is whole", async () => {
  const { emulator, ingest } = await openSlow();
  const first = emulator.now();
  emulator.advance(10_000);
  await ingest.database.pool.query(
    "update coverage_windows set searched_through = $1 where searched_through = $2",
    [new Date(first - 60_000), new Date(first)],
  );
  await ingest.poll();
  expect(await readThrough(ingest)).toBe(first - 60_000);
  emulator.advance(10_000);
  expect(await countStatements(() => ingest.poll())).toBeGreaterThan(8);
  expect(await readThrough(ingest)).toBe(emulator.now());
});

test("an answer that shows none of the known events is judged by a whole poll", async () => {
  const emulator = await openEmulator({ clock: () => NOW, eventsPerSecond: 0.3, lateShare: 0 });
  let isEmpty = false;
  const url = await openChangingPlatform(emulator, (body, path) => {
    if (!isEmpty || !path.includes("search")) return body;
    return JSON.stringify({ ...(JSON.parse(body) as object), rows: [], total: 0, totalPages: 0 });
  });
  const ingest = await openIngest(emulator, { ...FRESH, database, url });
  await ingest.poll();
  emulator.advance(10_000);
  await ingest.poll();
  const first = emulator.now();
  isEmpty = true;
  emulator.advance(10_000);
  await ingest.poll();
  const { rows } = await ingest.database.pool.query("select route, is_whole from zone_suspicions");
  expect(rows).toEqual([{ route: "search", is_whole: true }]);
  expect(await readThrough(ingest)).toBe(first);
  isEmpty = false;
  emulator.advance(10_000);
  await ingest.poll();
  const { rows: suspect } = await ingest.database.pool.query(
    "select from zone_suspicions where cleared_at is null",
  );
  expect(suspect).toEqual([]);
  expect(await readIds(ingest)).toEqual(await knownIds(emulator));
});

test("an event that a short poll shows with another value is noted as contested, like in a whole poll", async () => {
  const emulator = await openEmulator({ clock: () => NOW, eventsPerSecond: 0.5, lateShare: 0 });
  let isChanged = false;
  const url = await openChangingPlatform(emulator, (body, path) =>
    isChanged && path.includes("search") ? body.replaceAll('"block"', '"challenge"') : body,
  );
  const ingest = await openIngest(emulator, { ...FRESH, database, url });
  await ingest.poll();
  emulator.advance(10_000);
  await ingest.poll();
  isChanged = true;
  emulator.advance(10_000);
  await ingest.poll();
  const { rows } = await ingest.database.pool.query("select distinct field from event_revisions");
  expect(rows).toEqual([{ field: "action" }]);
});

test("a zone whose page looks like a scanner rises, so that it is polled again after ten seconds", async () => {
  const script = `zone=${ZONE},kind=scanner,start=+22s,rate=60/m`;
  const { emulator, ingest } = await openSlow({ attacks: [script] });
  const { db } = ingest.database;
  await db
    .insert(platformHealth)
    .values({ zoneId: ZONE, watchedSince: new Date(NOW) })
    .onConflictDoNothing();
  emulator.advance(10_000);
  await ingest.poll();
  expect(await isRising(db, ZONE, emulator.now())).toBe(false);
  emulator.advance(12_000);
  await ingest.poll();
  expect(await isRising(db, ZONE, emulator.now())).toBe(true);
});
