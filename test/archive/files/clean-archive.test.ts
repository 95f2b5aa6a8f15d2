import { existsSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, expect, test } from "vitest";
import { verifyArchive, verifyFolder } from "#archive/operations/verify-archive.ts";
import { enterFiles, listValidFiles } from "#db/archive/archive-files.ts";
import { readFile } from "#db/archive/day-files.ts";
import { readColdEnd } from "#db/archive/hot-days.ts";
import { readOldestRows } from "#db/people/retention.ts";
import { claimStorage } from "#jobs/archive/archive-store.ts";
import { cleanArchive } from "#jobs/archive/clean-archive.ts";
import { rewriteDay } from "#jobs/archive/rewrite-day.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { eraseRecord } from "#people/rules/erasure-guard.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { silent } from "../../ingest/ingest-support.ts";
import {
  DAY_START,
  inFileOrder,
  listFiles,
  openArchiveWorld,
  readEventsFile,
  readRecordsFile,
  recordOf,
} from "./archive-world.ts";

const DAY_MS = 86_400_000;
const ZONE = 301;
const world = await openArchiveWorld();
let nextDay = 0;

beforeAll(async () => {
  await claimStorage(world.database.db, world.storage);
});

/** A day of its own for each test, a month before the others. */
async function archiveDay(events = 4) {
  const from = DAY_START - (60 + nextDay++) * DAY_MS;
  const day = new Date(from).toISOString().slice(0, 10);
  const stored = Array.from({ length: events }, (_, index) =>
    makeEvent({
      occurredAt: from + index * 3_600_000,
      logId: `${day}-${index}`,
      ip: `203.0.113.${index % 2}`,
      ua: "a browser",
      url: "/me?mail=a@b.test",
      ja4: "t13",
      message: "matched a@b.test",
      method: "GET",
      requestId: `r${index}`,
      matchedKey: index,
      facts: 3,
    }),
  );
  await world.store(stored, { zoneId: ZONE });
  await writeDay(world, { zoneId: ZONE, day });
  return { day, events: stored };
}

const RETENTION = { rawDays: 400, ipDays: 400, eventDays: 400, rollUpDays: 800 };

const clean = (over: Partial<Parameters<typeof cleanArchive>[0]> = {}, now = DAY_START) =>
  cleanArchive(
    { database: world.database, archive: world, log: silent, retention: RETENTION, hotDays: null, ...over },
    now,
  );

const partitions = async () => {
  const { rows } = await world.database.pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = any(array['waf_events', 'raw_blocks']::regclass[])",
  );
  return rows.map(({ name }) => name);
};
const partitionsOf = async (day: string) =>
  (await partitions()).filter((name) => name.endsWith(day.replaceAll("-", "")));

const fileOf = async (day: string, kind: string) => {
  const file = (await listValidFiles(world.database.db, { zoneId: ZONE, day })).find(
    (one) => one.kind === kind,
  );
  return path.join(world.folder, file?.path ?? "");
};

/** The problems of a day that the two ways of `archive verify` find. */
const verify = async (day: string) => {
  const verifying = { ...world, onProgress: () => undefined, signal: new AbortController().signal };
  const found = [await verifyArchive(world.database.db, verifying), await verifyFolder(verifying)];
  return found.map(({ problems }) => problems.filter((problem) => problem.day === day));
};

test("a day is dropped from Postgres after its hot days, and not before", async () => {
  const { day } = await archiveDay();

  await clean({ hotDays: 7 }, Date.parse(day) + 7 * DAY_MS);
  expect(await partitionsOf(day)).toHaveLength(2);
  await clean({ hotDays: null });
  expect(await partitionsOf(day)).toHaveLength(2);
  await clean({ hotDays: 7 }, Date.parse(day) + 8 * DAY_MS);
  expect(await partitionsOf(day)).toEqual([]);
  // What commands say of stored data includes the files.
  expect(await readColdEnd(world.database.db, ZONE)).toBeGreaterThanOrEqual(Date.parse(day) + DAY_MS);
  const oldest = await readOldestRows(world.database.db);
  for (const at of [oldest.event, oldest.raw, oldest.fullAddress])
    expect(at).toBeLessThanOrEqual(Date.parse(day));
});

test("a day stays in Postgres while a file is damaged, an event is not in its file, or a zone is not archived", async () => {
  const [damaged, more, other] = [await archiveDay(), await archiveDay(), await archiveDay()];
  writeFileSync(await fileOf(damaged.day, "records"), "not Parquet");
  await world.database.pool.query(
    "insert into waf_events (occurred_at, zone_id, log_id, route) values ($1, $2, 'more', 'list')",
    [`${more.day}T01:00:00Z`, ZONE],
  );
  await world.store([makeEvent({ occurredAt: Date.parse(other.day), logId: "x" })], {
    zoneId: 302,
    isSealed: false,
  });

  await clean({ hotDays: 7 });

  for (const { day } of [damaged, more, other]) expect(await partitionsOf(day)).toHaveLength(2);
  rmSync(await fileOf(damaged.day, "records"));
});

test("an event that arrives for an archive day is quarantined with its reason, and its file and Postgres stay the same", async () => {
  const { day, events } = await archiveDay();
  const known = await partitionsOf(day);
  const late = makeEvent({ occurredAt: Date.parse(day) + 5, logId: "late", url: "/a\tb\n" });
  const today = makeEvent({ occurredAt: DAY_START, logId: "today" });
  await world.store([today], { zoneId: 303 });

  const stored = await storeEvents(world.database, ZONE, [late, { ...today, logId: "today2" }], {
    expectNew: true,
  });

  expect(stored.inserted).toBe(1);
  expect(await partitionsOf(day)).toEqual(known);
  const { rows } = await world.database.pool.query(
    "select day::text, route, reason, convert_from(raw, 'UTF8') as raw from quarantined_entries where zone_id = $1",
    [ZONE],
  );
  expect(rows).toEqual([
    {
      day,
      route: "search",
      reason: `${day} is an archive day, which does not change any more`,
      raw: expect.stringContaining(String.raw`/a\tb\n`),
    },
  ]);
  const { rows: counted } = await world.database.pool.query(
    "select count(*)::integer as events from waf_events where zone_id = $1 and occurred_at >= $2::timestamptz and occurred_at < $2::timestamptz + interval '1 day'",
    [ZONE, day],
  );
  expect(counted[0].events).toBe(events.length);
});

test("files past retention are deleted, the records before the events", async () => {
  const { day } = await archiveDay();
  const [events, records] = [await fileOf(day, "events"), await fileOf(day, "records")];
  const at = Date.parse(day) + 100 * DAY_MS;
  const age = () =>
    world.database.pool.query("update archive_files set retired_at = retired_at - interval '2 hours'");

  await clean({ retention: { ...RETENTION, rawDays: 90 } }, at);
  expect([existsSync(events), existsSync(records)]).toEqual([true, true]);
  expect(await verify(day)).toEqual([[], []]);
  await age();
  await clean({ retention: { ...RETENTION, rawDays: 90 } }, at);
  expect([existsSync(events), existsSync(records)]).toEqual([true, false]);
  expect(await verify(day)).toEqual([[], []]);
  await clean({ retention: { ...RETENTION, rawDays: 90, eventDays: 90 } }, at);
  await age();
  await clean({ retention: { ...RETENTION, rawDays: 90, eventDays: 90 } }, at);
  expect(listFiles(world.folder).filter((name) => name.includes(day))).toEqual([]);
});

test("files that killed writers left are removed after a day, but not a file that may be the only copy", async () => {
  const { day } = await archiveDay();
  const file = await fileOf(day, "events");
  const named = [
    path.join(path.dirname(file), "0123456789abcdef.parquet"),
    path.join(world.folder, "tmp", "101-left"),
    path.join(world.folder, "tmp", "spill", "spill-left"),
  ];
  mkdirSync(path.join(world.folder, "tmp", "spill"), { recursive: true });
  const only = path.join(world.folder, "events", "only.parquet");
  for (const name of [...named, only]) {
    writeFileSync(name, "x");
    utimesSync(name, 1, 1);
  }
  const added = path.join(path.dirname(file), "ffffffffffffffff.parquet");
  writeFileSync(added, "x");
  const used = path.join(world.folder, "tmp", "spill", "spill-used");
  writeFileSync(used, "x");

  await clean({}, Date.now());

  expect(named.map((name) => existsSync(name))).toEqual([false, false, false]);
  expect([file, only, added, used].map((name) => existsSync(name))).toEqual([true, true, true, true]);
  rmSync(only);
  rmSync(added);
});

test("a file that the manifest does not name stays while an hour of its day is unproven, or a named file of that day is gone", async () => {
  const { day } = await archiveDay();
  const file = await fileOf(day, "events");
  const unnamed = path.join(path.dirname(file), "0123456789abcdef.parquet");
  writeFileSync(unnamed, "x");
  utimesSync(unnamed, 1, 1);
  const setLastHour = (state: string) =>
    world.database.pool.query(
      `update coverage_windows set state = $1, sealed_at = case when $1 = 'sealed' then now() end, gap_reason = nullif($1, 'sealed')
       where zone_id = $2 and starts_at = $3`,
      [state, ZONE, `${day}T23:00:00Z`],
    );

  await setLastHour("gap");
  await clean({}, Date.now());
  expect(existsSync(unnamed)).toBe(true);

  await setLastHour("sealed");
  renameSync(file, `${file}.away`);
  await clean({}, Date.now());
  expect(existsSync(unnamed)).toBe(true);

  renameSync(`${file}.away`, file);
  await clean({}, Date.now());
  expect(existsSync(unnamed)).toBe(false);
});

const FORGOTTEN = { requestId: "", matchedKey: null };

test("an erasure empties the covered events and their records in new files, changes nothing else, and is safe to repeat", async () => {
  const { day, events } = await archiveDay(6);
  const { pool } = world.database;
  await pool.query(
    `insert into event_revisions (zone_id, occurred_at, log_id, field, seen_at, after)
     select $1, occurred_at, log_id, 'url', now(), '/former' from waf_events where zone_id = $1 and log_id = any($2)`,
    [ZONE, events.map(({ logId }) => logId)],
  );
  const before = [await fileOf(day, "events"), await fileOf(day, "records")];
  const change = {
    replace: (ip: string) => (ip === "203.0.113.1" ? "erased" : null),
    untilAt: events[3]?.occurredAt ?? 0,
    isErasure: true,
  };
  const rewrite = () =>
    rewriteDay({ database: world.database, archive: world }, { zoneId: ZONE, day }, change);

  // The fifth is covered by its address, but later.
  expect(await rewrite()).toEqual({ events: 2, records: 2 });
  expect(await rewrite()).toEqual({ events: 0, records: 0 });

  const after = [await fileOf(day, "events"), await fileOf(day, "records")];
  expect(after).not.toEqual(before);
  const isErased = (index: number) => index === 1 || index === 3;
  const { rows: revised } = await pool.query<{ log_id: string }>(
    "delete from event_revisions where zone_id = $1 returning log_id",
    [ZONE],
  );
  const kept = events.filter((_, index) => !isErased(index));
  expect(revised.map(({ log_id }) => log_id).toSorted()).toEqual(kept.map(({ logId }) => logId).toSorted());
  expect(await readEventsFile(world, after[0] ?? "")).toEqual(
    inFileOrder(events).map((event, index) =>
      isErased(index)
        ? { ...event, ip: "erased", ua: "", url: "", ja4: "", message: "", ...FORGOTTEN }
        : event,
    ),
  );
  expect(await readRecordsFile(world, after[1] ?? "")).toEqual(
    inFileOrder(events).map((event, index) =>
      isErased(index) ? eraseRecord(recordOf(event)) : recordOf(event),
    ),
  );
  await world.database.pool.query("update archive_files set retired_at = retired_at - interval '2 hours'");
  await clean();
  expect(before.map((name) => existsSync(name))).toEqual([false, false]);
  expect(after.map((name) => existsSync(name))).toEqual([true, true]);
});

test("a day of several parts keeps every record in the row of its event, also when a part of it is erased", async () => {
  const from = DAY_START - 200 * DAY_MS;
  const day = new Date(from).toISOString().slice(0, 10);
  const events = Array.from({ length: 33_300 }, (_, index) =>
    makeEvent({
      occurredAt: from + index,
      logId: `p${index}`,
      ip: index % 9_000 === 7 || index === 33_100 ? "203.0.113.9" : "203.0.113.8",
    }),
  );
  // No record in the whole second part.
  await world.store(events, { zoneId: ZONE, hasRecord: (_, index) => index < 16_000 || index > 33_000 });
  await writeDay(world, { zoneId: ZONE, day });
  const change = {
    replace: (ip: string) => (ip === "203.0.113.9" ? "erased" : null),
    untilAt: from + DAY_MS,
    isErasure: true,
  };

  const rewritten = await rewriteDay(
    { database: world.database, archive: world },
    { zoneId: ZONE, day },
    change,
  );

  // Rows 7, 9,007, 18,007, 27,007 and 33,100, of which the third and the fourth have no record.
  expect(rewritten).toEqual({ events: 5, records: 3 });
  const rows = [0, 7, 9_007, 15_999, 16_000, 18_007, 33_000, 33_001, 33_100, 33_299];
  const [found = []] = await world.duckdb.run([
    {
      sql: `select record from ${readFile(await fileOf(day, "records"))} where file_row_number in (${rows.join(", ")}) order by file_row_number`,
    },
  ]);
  expect(
    found.map(([record]) => (record === null ? null : String(Buffer.from(record as Uint8Array)))),
  ).toEqual(
    rows.map((row) => {
      const event = events[row];
      if (event === undefined || (row >= 16_000 && row <= 33_000)) return null;
      const record = recordOf(event);
      return String(event.ip === "203.0.113.9" ? eraseRecord(record) : record);
    }),
  );
});

test("pseudonyms replace addresses in the events file and leave the records file as it is", async () => {
  const { day, events } = await archiveDay(4);
  const records = await fileOf(day, "records");

  const rewritten = await rewriteDay(
    { database: world.database, archive: world },
    { zoneId: ZONE, day },
    { replace: (ip) => `anon-${ip}`, untilAt: Date.parse(day) + DAY_MS, isErasure: false },
  );

  expect(rewritten).toEqual({ events: 4, records: 0 });
  expect(await fileOf(day, "records")).toBe(records);
  expect(
    (await readEventsFile(world, await fileOf(day, "events"))).map(({ ip, url, requestId }) => [
      ip,
      url,
      requestId,
    ]),
  ).toEqual(events.map(({ ip, url }) => [`anon-${ip}`, url, ""]));
});

test("a file that becomes valid again keeps its row and is not deleted", async () => {
  const { day } = await archiveDay();
  const [file] = (await listValidFiles(world.database.db, { zoneId: ZONE, day })).filter(
    ({ kind }) => kind === "events",
  );
  if (file === undefined) throw new Error("no file");
  const again = {
    ...file,
    isUploaded: false,
    sum: BigInt(file.sum),
    firstAt: file.firstAt?.getTime() ?? null,
    lastAt: file.lastAt?.getTime() ?? null,
  };
  await world.database.pool.query(
    "update archive_files set retired_at = now() - interval '2 hours' where path = $1",
    [file.path],
  );
  await enterFiles(world.database.db, [again]);

  await clean();

  expect(existsSync(path.join(world.folder, file.path))).toBe(true);
  expect(await listValidFiles(world.database.db, { zoneId: ZONE, day })).toHaveLength(2);
});

test("a file is checked again within a day, and damage is noted before a search needs the file", async () => {
  const [whole, broken] = [await archiveDay(), await archiveDay()];
  writeFileSync(await fileOf(broken.day, "events"), "not Parquet");
  await world.database.pool.query("update archive_files set checked_at = now() - interval '13 hours'");

  await clean();

  const checked = async (day: string) =>
    (await listValidFiles(world.database.db, { zoneId: ZONE, day, kind: "events" })).map(
      ({ checkedAt, damage }) => [Date.now() - checkedAt.getTime() < 60_000, damage],
    );
  expect(await checked(whole.day)).toEqual([[true, null]]);
  expect(await checked(broken.day)).toEqual([[false, expect.stringContaining("instead of")]]);
  rmSync(await fileOf(broken.day, "events"));
});
