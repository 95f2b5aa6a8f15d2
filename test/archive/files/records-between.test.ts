import path from "node:path";
import { expect, test } from "vitest";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import { type FoundEvent, readRecords } from "#archive/search/read-records.ts";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { createArchiveReader } from "#db/archive/archive-reader.ts";
import { dropArchivedDay } from "#db/archive/hot-days.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { DAY, DAY_START, openArchiveWorld, readRecordsFile, recordOf } from "./archive-world.ts";

/** Records that a plain look under an event's own time and place misses. */

const world = await openArchiveWorld();

/** As a search finds them while their day is in Postgres. */
const found = (events: readonly WafEvent[]): FoundEvent[] =>
  events.map(({ logId, route, occurredAt }) => ({
    logId,
    route,
    occurredAt,
    fields: {} as FoundEvent["fields"],
    message: "",
    method: "",
    requestId: "",
    archived: null,
  }));

async function readEach(zoneId: number, events: readonly WafEvent[]) {
  const { duckdb, folder, storage, database } = world;
  const files = createArchiveReader({ duckdb, storage, scratch: folder });
  const deps = { queries: database, files, openedBlocks: createOpenedBlocks(1_000_000) };
  return readRecords(deps, zoneId, found(events), new AbortController().signal);
}

async function recordsInFile(zoneId: number, day: string) {
  const [file] = await listValidFiles(world.database.db, { zoneId, day, kind: "records" });
  return readRecordsFile(world, path.join(world.folder, file?.path ?? ""));
}

/** The event's record is kept under another time, as after the list showed a wrong one. */
async function keepUnder(zoneId: number, event: WafEvent, otherAt: number): Promise<void> {
  const other = { occurredAt: otherAt, logId: event.logId };
  const entry = { occurredAt: otherAt, logIdHash: hashEventKey(other), raw: recordOf(event) };
  await insertRawBlocks(world.database.db, zoneId, await packRawBlocks([entry]));
  await world.database.pool.query(
    `insert into event_aliases (zone_id, log_id, other_at, kept_at, noted_at) values ($1, $2, $3, $4, now())`,
    [zoneId, event.logId, new Date(otherAt), new Date(event.occurredAt)],
  );
}

test("a record under a second time of its event is found before and after its day is archived, whatever day holds it", async () => {
  const zoneId = 401;
  const events = ["own", "near", "day before"].map((logId, index) =>
    makeEvent({ occurredAt: DAY_START + index * 1_000, logId }),
  );
  const before = makeEvent({ occurredAt: DAY_START - 3_600_000, logId: "of the day before" });
  await world.store([before], { zoneId });
  await world.store(events, { zoneId, hasRecord: (_, index) => index === 0 });
  const [, near, far] = events as [WafEvent, WafEvent, WafEvent];
  await keepUnder(zoneId, near, near.occurredAt + 500);
  await keepUnder(zoneId, far, far.occurredAt - 86_400_000);
  const dayBefore = new Date(DAY_START - 86_400_000).toISOString().slice(0, 10);

  expect(await readEach(zoneId, events)).toEqual(events.map(recordOf));
  expect(await writeDay(world, { zoneId, day: dayBefore })).toMatchObject({
    outcome: "written",
    withoutEvent: 0,
  });
  // The day before still holds a record of this day.
  expect(await dropArchivedDay(world.database, dayBefore)).toEqual([{ zoneId, stored: 1, archived: null }]);
  expect(await writeDay(world, { zoneId, day: DAY })).toMatchObject({ outcome: "written", withoutEvent: 0 });
  expect(await dropArchivedDay(world.database, dayBefore)).toEqual([]);

  expect(await recordsInFile(zoneId, DAY)).toEqual(events.map(recordOf));
  expect(await recordsInFile(zoneId, dayBefore)).toEqual([recordOf(before)]);
});

test("records of events that were found in Postgres are read from the archive if their day has moved there since", async () => {
  const zoneId = 402;
  const events = Array.from({ length: 5 }, (_, index) =>
    makeEvent({ occurredAt: DAY_START + 100 + (index >> 1), logId: `m${index}` }),
  );
  await world.store(events, { zoneId, hasRecord: (_, index) => index !== 2 });
  await writeDay(world, { zoneId, day: DAY });

  await world.database.pool.query("delete from raw_blocks where zone_id = $1", [zoneId]);

  expect(await readEach(zoneId, events)).toEqual(
    events.map((event, index) => (index === 2 ? undefined : recordOf(event))),
  );
});
