import { expect, onTestFinished, test } from "vitest";
import { ensurePartitions } from "../../../db/postgres/partitions.ts";
import { createSearchMemory } from "../../../db/search/search-memory.ts";
import { searchRows } from "../../../db/search/search-rows.ts";
import { createBuildCubesJob } from "../../../jobs/archive/build-cubes.ts";
import { createCloseDaysJob } from "../../../jobs/archive/close-days.ts";
import { planSearch } from "../../../src/archive/query/plan-search.ts";
import { DAY_MS, HOUR_MS } from "../../../src/lib/units.ts";
import type { WafEvent } from "../../../src/model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { silent } from "../../ingest/ingest-support.ts";
import { DAYS, END, FIRST_DAY } from "./draw.ts";
import { mustRead, ZONE } from "./world.ts";

/** Begins and ends within an hour: its first day is cut, its last one is open. */
const CUT = { from: FIRST_DAY + 1_234_567, to: END - 1_234_567, pageSize: 500 };

/** So many events, evenly over all days. */
function someEvents(count: number, prefix = "e"): WafEvent[] {
  return Array.from({ length: count }, (_, index) =>
    makeEvent({
      occurredAt: FIRST_DAY + Math.floor((index * (END - FIRST_DAY)) / count),
      logId: `${prefix}${index}`,
      ruleId: "942100",
      country: "DE",
    }),
  );
}

/** All days but the last are closed and counted. */
async function openArchive(events: readonly WafEvent[]): Promise<MigratedDatabase> {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  await ensurePartitions(database, DAYS);
  await storeEvents(database, ZONE, events, { expectNew: true });
  const { signal } = new AbortController();
  const clock = () => END + 2 * DAY_MS;
  await createCloseDaysJob({ database, clock, log: silent }).run({} as never, signal);
  await countDays(database);
  return database;
}

const countDays = (database: MigratedDatabase) =>
  createBuildCubesJob({ database, log: silent }).run({} as never, new AbortController().signal);

function pageOf(database: MigratedDatabase, body: object) {
  return searchRows(database, ZONE, planSearch(mustRead(body)));
}

const isInside = ({ occurredAt }: { occurredAt: number }) => occurredAt >= CUT.from && occurredAt < CUT.to;

test("a page and its total are of one moment while events come in, also late ones, and days are counted anew", async () => {
  const database = await openArchive(someEvents(100));
  const stored = someEvents(100).filter(isInside).length;
  const written = new AbortController();
  const write = async () => {
    for (let round = 0; round < 12; round++) {
      const late = someEvents(10, `late-${round}-`);
      const live = Array.from({ length: 10 }, (_, index) =>
        makeEvent({ occurredAt: CUT.to - 1 - index * HOUR_MS, logId: `live-${round}-${index}` }),
      );
      await storeEvents(database, ZONE, [...late, ...live], { expectNew: false });
      if (round % 3 === 0) await countDays(database);
    }
    written.abort();
  };
  const totals: number[] = [];
  const read = async () => {
    while (!written.signal.aborted) {
      const { rows, total } = await pageOf(database, CUT);
      expect(rows.length).toBe(total);
      totals.push(total);
    }
  };
  await Promise.all([write(), read()]);
  const { rows, total } = await pageOf(database, CUT);
  expect(totals).toEqual(totals.toSorted((one, other) => one - other));
  expect(total).toBe(stored + 12 * (someEvents(10).filter(isInside).length + 10));
  expect(rows.length).toBe(total);
});

test("what is remembered of a day is not used once the day is another", async () => {
  const database = await openArchive(someEvents(100));
  const expectWhole = async (total: number) => {
    for (let turn = 0; turn < 2; turn++) {
      const page = await pageOf(database, CUT);
      expect(page.total).toBe(total);
      expect(page.rows.length).toBe(total);
    }
  };
  const stored = someEvents(100).filter(isInside).length;
  await expectWhole(stored);

  const late = makeEvent({ occurredAt: CUT.from + 5, logId: "late" });
  await storeEvents(database, ZONE, [late], { expectNew: true });
  await expectWhole(stored + 1);
  await countDays(database);
  await expectWhole(stored + 1);

  // The day is dropped, made anew and counted: its row says the same number of marks as the first time.
  await database.pool.query("drop table waf_events_20260301");
  const left = someEvents(100).filter((event) => isInside(event) && event.occurredAt >= FIRST_DAY + DAY_MS);
  await expectWhole(left.length);
  await database.pool.query("delete from cube_days where day = '2026-03-01'");
  await database.pool.query("delete from coverage_windows where starts_at < '2026-03-02'");
  await ensurePartitions(database, DAYS);
  await expectWhole(left.length);
  await storeEvents(database, ZONE, [late], { expectNew: true });
  await expectWhole(left.length + 1);
});

test("a window is whole wherever in an hour it begins and ends", async () => {
  const events = someEvents(2_000);
  const database = await openArchive(events);
  const edges = [0, 1, HOUR_MS - 1, HOUR_MS, HOUR_MS + 1, DAY_MS - 1, DAY_MS, 30 * HOUR_MS + 600_000];
  const froms = [...edges.map((ms) => FIRST_DAY + ms), ...edges.map((ms) => END - DAY_MS + ms)];
  for (const from of froms) {
    for (const length of [1, 20 * 60_000, HOUR_MS, 90 * 60_000, DAY_MS + 1, 3 * DAY_MS]) {
      const { rows, total } = await pageOf(database, { from, to: from + length, pageSize: 500 });
      const wanted = events.filter(({ occurredAt }) => occurredAt >= from && occurredAt < from + length);
      expect({ from, length, total }).toEqual({ from, length, total: wanted.length });
      expect(rows.map(({ logId }) => logId)).toEqual(
        wanted
          .map(({ logId }) => logId)
          .reverse()
          .slice(0, 500),
      );
    }
  }
});

test("the oldest times are forgotten first, and times of another version are none", () => {
  const memory = createSearchMemory(10);
  const day = (number: number, version = "1") => ({ zoneId: ZONE, day: number, version });
  memory.rememberTimes(day(1), new Int32Array(4));
  memory.rememberTimes(day(2), new Int32Array(4));
  expect(memory.timesOf(day(1))).toHaveLength(4);
  memory.rememberTimes(day(3), new Int32Array(4));
  expect(memory.timesOf(day(2))).toBeUndefined();
  expect(memory.timesOf(day(1, "2"))).toBeUndefined();
  memory.rememberTimes(day(1, "2"), new Int32Array(6));
  expect(memory.timesOf(day(1))).toBeUndefined();
  expect(memory.timesOf(day(1, "2"))).toHaveLength(6);
  memory.rememberTimes(day(4), new Int32Array(11));
  expect(memory.timesOf(day(4))).toBeUndefined();
  expect(memory.timesOf(day(3))).toHaveLength(4);
});
