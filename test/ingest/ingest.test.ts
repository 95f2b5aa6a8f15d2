import { expect, test } from "vitest";
import { findRecordBlocks, readRecordBlocks } from "#db/archive/read-files.ts";
import { isKnownPage } from "#db/ingest/list-passes.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { startOfHour } from "#model/horizon.ts";
import { openRawBlock } from "#model/raw-block.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle, walkDay, YESTERDAY } from "../emulator/support.ts";
import {
  enterWatched,
  expectedRows,
  openChangingPlatform,
  openIngest,
  storedRows,
  withoutRoute,
  ZONE,
} from "./ingest-support.ts";

const database = await shareDatabase();
const HISTORY = { zones: [ZONE], historyHours: 4, eventsPerSecond: 0.02 } as const;
/** The zone was watched before the history began. */
const WATCHED = { database, openHours: 4 } as const;

async function count(
  { pool }: { pool: { query: (text: string) => Promise<{ rows: { n: number }[] }> } },
  table: string,
) {
  const { rows } = await pool.query(`select count(*)::integer as n from ${table}`);
  return rows[0]?.n;
}

test("the search brings every event with every dimension, and the list adds no event but every record once", async () => {
  // The hours with events: two that have left the list, one of yesterday, and the newest.
  const emulator = await openEmulator({
    zones: [ZONE],
    historyHours: 1,
    eventsPerSecond: 0,
    attacks: ["2026-11-17T21:00Z", "2026-11-17T22:00Z", "2026-11-19T10:00Z", "2026-11-20T15:00Z"].map(
      (start) => `zone=${ZONE},rule=942100,start=${start},duration=20m,rate=0.05/s`,
    ),
  });
  const starts = [...new Set((await oracle(emulator)).map(({ timestamp }) => startOfHour(timestamp)))];
  await enterWatched(database, NOW, (startsAt) => starts.includes(startsAt));
  const ingest = await openIngest(emulator, { database });
  await ingest.poll();
  const first = await storedRows(ingest.database);
  expect(first.length).toBeGreaterThan(200);
  expect(withoutRoute(first)).toEqual(expectedRows(await oracle(emulator)));
  expect(new Set(first.map(({ route }) => route))).toEqual(new Set(["search"]));
  await ingest.walk();
  expect(await storedRows(ingest.database)).toEqual(first);

  // The closing searches of the hours that have left the list add no second record.
  emulator.advance(16 * MINUTE_MS);
  await ingest.poll();
  await ingest.walk();
  const { rows } = await ingest.database.pool.query<{ day: string; block: Buffer }>(
    "select day::text as day, block from raw_blocks",
  );
  const recordsOf = async (blocks: typeof rows) =>
    (await Promise.all(blocks.map(({ block }) => openRawBlock(block)))).flat().map(String);
  const all = (await recordsOf(rows)).map((record) => (JSON.parse(record) as { logId: string }).logId);
  expect(all.sort()).toEqual((await storedRows(ingest.database)).map(({ log_id }) => log_id).sort());

  const left = (await oracle(emulator)).filter(({ timestamp }) => timestamp < Date.UTC(2026, 10, 18));
  expect(left.length).toBeGreaterThan(100);
  const unlisted = left.map(({ logId, timestamp, log, ...fields }) =>
    JSON.stringify({ logId, timestamp, log, fields }),
  );
  const kept = await recordsOf(rows.filter(({ day }) => day < "2026-11-18"));
  expect(kept.sort()).toEqual(unlisted.sort());
  const listed = (await walkDay(emulator, YESTERDAY)).flatMap(({ logs }) => logs ?? []);
  const ofYesterday = await recordsOf(rows.filter(({ day }) => day === "2026-11-19"));
  expect(ofYesterday.sort()).toEqual(listed.map((entry) => JSON.stringify(entry)).sort());
});

test.each(["oldest", "newest"] as const)(
  "where the search is refused the list alone brings every event (%s first)",
  async (order) => {
    const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 60, order } });
    emulator.addFault({ kind: "envelope", operation: "search-event-logs" });
    const ingest = await openIngest(emulator, WATCHED);
    await expect(ingest.poll()).rejects.toMatchObject({ disposition: "give-up" });
    await ingest.walk();
    const rows = await storedRows(ingest.database);
    const events = expectedRows(await oracle(emulator));
    expect(rows.map(({ log_id }) => log_id)).toEqual(events.map(({ log_id }) => log_id));
    expect(rows.map(({ url }) => url)).toEqual(events.map(({ url }) => url));
    expect(rows.map(({ action }) => action)).toEqual(events.map(({ action }) => action));
    expect(rows.every(({ feature, ja4 }) => feature === null && ja4 === null)).toBe(true);

    emulator.clearFaults();
    await ingest.poll();
    expect(withoutRoute(await storedRows(ingest.database))).toEqual(events);
  },
);

test("a page read again unchanged writes no event, no record and no stale minute", async () => {
  const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 100 } });
  const ingest = await openIngest(emulator, { database });
  await ingest.walk();
  await ingest.database.pool.query("delete from dirty_buckets");
  const blocks = await count(ingest.database, "raw_blocks");
  emulator.advance(16 * MINUTE_MS);
  ingest.pages.length = 0;
  await ingest.walk();
  expect(ingest.pages.length).toBeGreaterThan(2);
  const present = expectedRows(await oracle(emulator)).filter(({ at }) => at >= NOW);
  expect(ingest.pages.reduce((sum, { inserted }) => sum + inserted, 0)).toBeGreaterThanOrEqual(
    present.length,
  );
  expect(await count(ingest.database, "raw_blocks")).toBeLessThanOrEqual((blocks ?? 0) + 3);
  const { rows } = await ingest.database.pool.query<{ minute: Date }>(
    "select min(minute) as minute from dirty_buckets",
  );
  expect(rows[0]?.minute.getTime()).toBeGreaterThan(NOW - HOUR_MS);
});

test("events that appear late are found by the overlap or by the next list pass", async () => {
  const emulator = await openEmulator({ ...HISTORY, historyHours: 1, lateShare: 0.3 });
  const ingest = await openIngest(emulator, WATCHED);
  for (let step = 0; step < 6; step++) {
    await ingest.poll();
    await ingest.walk();
    emulator.advance(3 * MINUTE_MS);
  }
  emulator.advance(30 * MINUTE_MS);
  await ingest.poll();
  await ingest.walk();
  await ingest.poll();
  const ids = (await storedRows(ingest.database)).map(({ log_id }) => log_id);
  expect(ids).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
});

test("a walk takes the lease of a day only if the day needs a pass", async () => {
  const emulator = await openEmulator({ ...HISTORY, eventsPerSecond: 0.002 });
  const ingest = await openIngest(emulator, { database });
  // Today's list always needs a short pass.
  const readFences = async () =>
    (
      await ingest.database.pool.query(
        "select name, fence from leases where name like 'walk-days%' and name not like '%2026-11-20' order by name",
      )
    ).rows;
  await ingest.walk();
  const fences = await readFences();
  expect(fences.length).toBeGreaterThan(1);
  await ingest.walk();
  expect(await readFences()).toEqual(fences);
});

test("two replicas polling and walking at once store every event once and count each hour right", async () => {
  const emulator = await openEmulator(HISTORY);
  const first = await openIngest(emulator, WATCHED);
  const second = await openIngest(emulator, { database: first.database });
  await Promise.all([first.poll(), second.poll(), first.walk(), second.walk()]);
  await Promise.all([first.walk(), second.poll()]);
  expect(withoutRoute(await storedRows(first.database))).toEqual(expectedRows(await oracle(emulator)));
  const { rows } = await first.database.pool.query(`
    select w.starts_at from coverage_windows w left join (
      select date_trunc('hour', occurred_at) as hour, count(*) as n from waf_events group by 1) e on e.hour = w.starts_at
    where w.stored_count <> coalesce(e.n, 0)`);
  expect(rows).toEqual([]);
});

test("a runner that lost its lease between reading and writing commits nothing", async () => {
  const emulator = await openEmulator(HISTORY);
  const ingest = await openIngest(emulator, {
    ...WATCHED,
    url: await openChangingPlatform(emulator, async (body) => {
      await ingest.database.pool.query("update leases set fence = fence + 1, holder = 'another'");
      return body;
    }),
  });
  await expect(ingest.walk()).rejects.toMatchObject({ code: "FENCE_LOST" });
  await expect(ingest.poll()).rejects.toMatchObject({ code: "FENCE_LOST" });
  expect(await count(ingest.database, "waf_events")).toBe(0);
  expect(await count(ingest.database, "pages")).toBe(0);
});

test("a pass that is stopped goes on at the page it stood at, in another process as well", async () => {
  const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 40 } });
  const stopping = new AbortController();
  let answers = 0;
  const first = await openIngest(emulator, {
    database,
    url: await openChangingPlatform(emulator, (body) => {
      if (++answers >= 5) stopping.abort();
      return body;
    }),
  });
  await first.walk(stopping.signal);
  const { rows: stopped } = await first.database.pool.query<{ day: string; pages_seen: number }>(
    "select day::text, pages_seen from ingest_cursors where pass_result is null",
  );
  expect(stopped).toHaveLength(1);
  expect(stopped[0]?.pages_seen).toBeGreaterThan(0);
  const second = await openIngest(emulator, { database: first.database });
  await second.walk();
  const { rows: ended } = await first.database.pool.query(
    `select c.pass, c.pass_result, c.pages_seen - count(distinct p.page) as holes
     from ingest_cursors c join pages p using (zone_id, day, pass) where day = $1 group by 1, 2, c.pages_seen`,
    [stopped[0]?.day],
  );
  expect(ended).toEqual([{ pass: 1, pass_result: "full", holes: "0" }]);
  const ids = (await storedRows(first.database)).map(({ log_id }) => log_id);
  expect(ids).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
});

test("a refused token begins the pass again and nothing is missed", async () => {
  const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 60 } });
  const ingest = await openIngest(emulator, { database });
  emulator.addFault({ kind: "token-expiry", next: 1 });
  for (let run = 0; run < 3; run++) await ingest.walk();
  const { rows } = await ingest.database.pool.query(
    "select day, pass, pass_result from ingest_cursors order by day",
  );
  expect(rows.every(({ pass_result }) => pass_result === "full" || pass_result === "short")).toBe(true);
  expect(rows.some(({ pass }) => pass > 1)).toBe(true);
  const ids = (await storedRows(ingest.database)).map(({ log_id }) => log_id);
  expect(ids).toEqual(expectedRows(await oracle(emulator)).map(({ log_id }) => log_id));
});

test("a token that comes again ends the pass, and the pass proves nothing", async () => {
  const emulator = await openEmulator({ ...HISTORY, switches: { pageSize: 60 } });
  emulator.addFault({ kind: "token-loop", pages: 2 });
  const ingest = await openIngest(emulator, { database });
  await ingest.walk();
  const { rows } = await ingest.database.pool.query(
    "select pass_result, full_pass_started_at from ingest_cursors",
  );
  expect(rows).toHaveLength(3);
  expect(rows.some(({ pass_result }) => pass_result === "looped")).toBe(true);
  expect(
    rows
      .filter(({ pass_result }) => pass_result === "looped")
      .every(({ full_pass_started_at }) => full_pass_started_at === null),
  ).toBe(true);
  expect(emulator.requests().counts["list-event-logs"]).toBeLessThan(80);
});

test("payloads with NUL, lone surrogates and COPY's own escapes are stored, the record untouched", async () => {
  const emulator = await openEmulator({ ...HISTORY, historyHours: 1 });
  const nasty = "/\\.\\N\t\n\r\u0000\ud800é😀\u202e";
  const url = await openChangingPlatform(emulator, (body, path) => {
    if (!path.endsWith("/search")) return body;
    const answer = JSON.parse(body) as { rows: { fields: Record<string, string> }[] };
    for (const row of answer.rows) row.fields["url"] = nasty;
    return JSON.stringify(answer);
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  const rows = await storedRows(ingest.database);
  expect(rows.length).toBeGreaterThan(30);
  expect(new Set(rows.map((row) => row.url))).toEqual(new Set(["/\\.\\N\t\n\r\uFFFD\uFFFDé😀\u202e"]));
});

test("an hour with more events than paging should hold is searched in parts", async () => {
  // A search with up to 5,000 events is not divided.
  const emulator = await openEmulator({ zones: [ZONE], historyHours: 1, eventsPerSecond: 0.01 });
  const start = new Date(NOW - HOUR_MS).toISOString();
  emulator.addAttack(`zone=${ZONE},rule=942100,start=${start},duration=29m,rate=3/s`);
  const ingest = await openIngest(emulator, WATCHED);
  await ingest.poll();
  const rows = await storedRows(ingest.database);
  expect(rows.length).toBeGreaterThan(5_200);
  expect(Math.max(...ingest.pages.map(({ entries }) => entries))).toBeLessThan(4_000);
  expect(rows.map(({ log_id }) => log_id)).toEqual(
    expectedRows(await oracle(emulator)).map(({ log_id }) => log_id),
  );
});

test("the zone of a page is the one that was asked for", async () => {
  const emulator = await openEmulator({ ...HISTORY, historyHours: 1, zones: [ZONE, 102] });
  const ingest = await openIngest(emulator, WATCHED);
  await ingest.poll();
  const { rows } = await ingest.database.pool.query("select distinct zone_id from waf_events");
  expect(rows).toEqual([{ zone_id: ZONE }]);
});

test("S3: pages that were read and records that are kept of one zone are nothing to another", async () => {
  const emulator = await openEmulator({ ...HISTORY, historyHours: 1 });
  const { walk } = await openIngest(emulator, { database });
  await walk();
  const { rows } = await database.pool.query<{ day: string; hash: Buffer }>(
    "select day::text, hash from pages where entries > 0",
  );
  expect(rows.length).toBeGreaterThan(0);
  for (const { day, hash } of rows) {
    expect(await isKnownPage(database.db, ZONE, day, hash)).toBe(true);
    expect(await isKnownPage(database.db, ZONE, "2026-11-01", hash)).toBe(false);
    expect(await isKnownPage(database.db, 102, day, hash)).toBe(false);
  }
  const span = { day: "2026-11-20", fromMs: NOW - 86_400_000, toMs: NOW };
  const blocks = await findRecordBlocks(database.db, [{ zoneId: ZONE, ...span }]);
  expect(blocks.length).toBeGreaterThan(0);
  expect((await readRecordBlocks(database.db, blocks)).size).toBe(blocks.length);
  expect(await findRecordBlocks(database.db, [{ zoneId: 102, ...span }])).toEqual([]);
  const ofAnother = blocks.map((block) => ({ ...block, zoneId: 102 }));
  expect((await readRecordBlocks(database.db, ofAnother)).size).toBe(0);
});
