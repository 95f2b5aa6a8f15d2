import { readFileSync } from "node:fs";
import path from "node:path";
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { beforeAll, expect, test } from "vitest";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { type WrittenDay, writeDay } from "#jobs/archive/write-day.ts";
import { hashFile } from "#lib/files.ts";
import { EVENT_FILE_COLUMNS } from "#model/archive-layout.ts";
import { toUrlPart } from "#model/record-parts.ts";
import {
  DAY,
  DAY_START,
  hostileEvents,
  inFileOrder,
  listFiles,
  openArchiveWorld,
  readEventsFile,
  readRecordsFile,
  recordOf,
  ZONE,
} from "./archive-world.ts";

const EVENTS = hostileEvents();
const hasRecord = (_: unknown, index: number) => index % 4 !== 1;
const RECORDS = new Map(EVENTS.filter(hasRecord).map((event) => [event.logId, recordOf(event)]));
const world = await openArchiveWorld();
let written: WrittenDay;

beforeAll(async () => {
  await world.store(EVENTS, { hasRecord });
  written = await writeDay(world, { zoneId: ZONE, day: DAY });
});

const pathOf = (kind: "events" | "records") => {
  const files = written.outcome === "written" ? written.files : [];
  return path.join(world.folder, files.find((file) => file.kind === kind)?.path ?? "");
};

test("an events file holds every event, byte for byte and in order, whatever its texts are", async () => {
  expect(await readEventsFile(world, pathOf("events"))).toEqual(inFileOrder(EVENTS));
});

test("row n of the records file is the record of row n of the events file, null where there is none", async () => {
  const expected = inFileOrder(EVENTS).map(({ logId }) => RECORDS.get(logId) ?? null);

  expect(await readRecordsFile(world, pathOf("records"))).toEqual(expected);
  expect(expected.filter((record) => record === null).length).toBeGreaterThan(20);
});

test("an independent reader of Parquet finds the same rows and types", async () => {
  const file = await asyncBufferFromFile(pathOf("events"));
  const metadata = await parquetMetadataAsync(file);
  const rows = await parquetReadObjects({ file, compressors });
  const records = await parquetReadObjects({
    file: await asyncBufferFromFile(pathOf("records")),
    compressors,
    utf8: false,
  });

  const withoutMark = (text: string | null) => text?.replace(/^\u{FEFF}/u, "") ?? null;
  expect(rows).toEqual(
    inFileOrder(EVENTS).map(
      ({ occurredAt, logId, route, ruleId, requestId, matchedKey, facts, ...event }) => ({
        occurred_at: new Date(occurredAt),
        zone_id: ZONE,
        log_id: withoutMark(logId),
        route,
        rule_id: withoutMark(ruleId),
        request_id: withoutMark(requestId),
        matched_key: matchedKey,
        facts,
        host: event.url === null ? null : withoutMark(toUrlPart("host", event.url)),
        path: event.url === null ? null : withoutMark(toUrlPart("path", event.url)),
        // This reader drops a mark at the beginning of a text.
        ...Object.fromEntries(Object.entries(event).map(([name, text]) => [name, withoutMark(text)])),
      }),
    ),
  );
  expect(records.map(({ record }) => (record === null ? null : Buffer.from(record as Uint8Array)))).toEqual(
    inFileOrder(EVENTS).map(({ logId }) => RECORDS.get(logId) ?? null),
  );
  const [time] = parquetSchema(metadata).children;
  expect(time?.element).toMatchObject({
    name: "occurred_at",
    type: "INT64",
    logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" },
  });
  expect(
    Object.fromEntries((metadata.key_value_metadata ?? []).map(({ key, value }) => [key, value])),
  ).toMatchObject({
    longwatch_kind: "events",
    longwatch_format: "2",
    longwatch_zone: "101",
    longwatch_day: DAY,
  });
});

test("the columns of both files have the field ids of the layout", async () => {
  const idsOf = async (kind: "events" | "records") => {
    const [file] = (await listValidFiles(world.database.db, { zoneId: ZONE, day: DAY })).filter(
      (one) => one.kind === kind,
    );
    const [rows = []] = await world.duckdb.run([
      {
        sql: `select encode(name), field_id::integer from parquet_schema('${path.join(world.folder, file?.path ?? "")}') where field_id is not null`,
      },
    ]);
    return rows.map(([name, id]) => [Buffer.from(name as Uint8Array).toString(), id]);
  };
  expect(await idsOf("events")).toEqual(EVENT_FILE_COLUMNS.map(({ name }, index) => [name, index + 1]));
  expect(await idsOf("records")).toEqual([["record", 100]]);
});

test("the manifest and the statement describe the files that exist, and nothing else is left in the folder", async () => {
  const entered = await listValidFiles(world.database.db, { zoneId: ZONE, day: DAY });
  const statement = JSON.parse(
    readFileSync(path.join(world.folder, `events/zone=101/day=${DAY}/_statement.json`), "utf8"),
  );

  expect(listFiles(world.folder).filter((name) => !/zone=(?!101)/.test(name))).toEqual(
    [...entered.map((file) => file.path), `events/zone=101/day=${DAY}/_statement.json`].sort(),
  );
  for (const { kind, path: name, sha256, bytes, rows, hours, firstAt, lastAt, sum } of entered) {
    expect(await hashFile(path.join(world.folder, name))).toEqual({ sha256, bytes });
    expect(rows).toBe(EVENTS.length);
    expect(hours).toEqual(
      Array.from(
        { length: 24 },
        (_, hour) => EVENTS.filter((event) => new Date(event.occurredAt).getUTCHours() === hour).length,
      ),
    );
    expect([firstAt?.getTime(), lastAt?.getTime()]).toEqual([
      DAY_START,
      Math.max(...EVENTS.map((event) => event.occurredAt)),
    ]);
    expect(statement.files).toContainEqual({ kind, path: name, sha256, bytes, rows, sum });
  }
  expect(statement).toMatchObject({
    format: 2,
    zoneId: ZONE,
    day: DAY,
    records: RECORDS.size,
    recordsWithoutEvent: 0,
  });
  expect(statement.coverage).toHaveLength(24);
  expect(statement.coverage[3]).toMatchObject({
    startsAt: `${DAY}T03:00:00.000Z`,
    state: "sealed",
    evidence: { looks: 2 },
  });
});

test("an archived day is not written again", async () => {
  expect(await writeDay(world, { zoneId: ZONE, day: DAY })).toEqual({ outcome: "nothing-to-do" });
});

test("a day without events of its own gets an events file without rows", async () => {
  const empty = await writeDay(world, { zoneId: 999, day: DAY });

  expect(empty).toMatchObject({
    outcome: "written",
    files: [{ kind: "events", rows: 0, firstAt: null, lastAt: null }],
  });
});

test("a day whose roll-up has another count is not written, and its hours are marked to be counted again", async () => {
  await world.store(EVENTS.slice(0, 6), { zoneId: 102 });
  await world.database.pool.query(
    "update rule_buckets set total = total + 1, other = other + 1 where zone_id = 102 and width = 3600",
  );

  expect(await writeDay(world, { zoneId: 102, day: DAY })).toMatchObject({ outcome: "counts-differ" });

  const { rows } = await world.database.pool.query(
    "select count(*)::integer as stale from dirty_buckets where zone_id = 102",
  );
  expect(rows[0].stale).toBeGreaterThanOrEqual(60);
});
