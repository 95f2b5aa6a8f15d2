import { expect, onTestFinished, test } from "vitest";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { searchRows } from "#archive/search/find-rows.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { sample } from "../../support/sample.ts";
import { archiveDay, openTestFolder } from "../archive-folder.ts";
import { DAYS, END, FIRST_DAY } from "./draw.ts";
import { mustRead, ZONE } from "./world.ts";

/** Begins and ends within an hour: its first day is cut, and so is its last one. */
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

/** The first and the third day are archived. */
async function openArchive(events: readonly WafEvent[]) {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  await ensurePartitions(database, DAYS);
  await storeEvents(database, ZONE, events, { expectNew: true });
  const folder = await openTestFolder();
  for (const day of [DAYS[0], DAYS[2]]) await archiveDay(database, folder, day);
  const pageOf = (body: object) =>
    searchRows(
      { queries: database, files: folder.files },
      ZONE,
      planSearch(mustRead(body)),
      new AbortController().signal,
    );
  return { database, folder, pageOf };
}

const isInside = ({ occurredAt }: { occurredAt: number }) => occurredAt >= CUT.from && occurredAt < CUT.to;

test("a page and its total are of one moment while events come in and days move into the archive", async () => {
  const { database, folder, pageOf } = await openArchive(someEvents(100));
  const stored = someEvents(100).filter(isInside).length;
  const written = new AbortController();
  const write = async () => {
    for (let round = 0; round < 8; round++) {
      const live = Array.from({ length: 10 }, (_, index) =>
        makeEvent({ occurredAt: CUT.to - 1 - index * HOUR_MS, logId: `live-${round}-${index}` }),
      );
      await storeEvents(database, ZONE, live, { expectNew: false });
      if (round === 2) await archiveDay(database, folder, DAYS[1]);
      if (round === 5) await archiveDay(database, folder, DAYS[3]);
    }
    written.abort();
  };
  const totals: number[] = [];
  const read = async () => {
    while (!written.signal.aborted) {
      const { rows, total } = await pageOf(CUT);
      expect(rows.length).toBe(total);
      totals.push(total);
    }
  };
  await Promise.all([write(), read()]);
  const { rows, total } = await pageOf(CUT);
  expect(totals).toEqual(totals.toSorted((one, other) => one - other));
  expect(total).toBe(stored + 8 * 10);
  expect(rows.length).toBe(total);
});

test("a window is whole wherever in an hour it begins and ends", async () => {
  const events = someEvents(600);
  const { pageOf } = await openArchive(events);
  const edges = [0, 1, HOUR_MS - 1, HOUR_MS, HOUR_MS + 1, DAY_MS - 1, DAY_MS, 30 * HOUR_MS + 600_000];
  const froms = [...edges.map((ms) => FIRST_DAY + ms), ...edges.map((ms) => END - DAY_MS + ms)];
  const lengths = [1, 90 * 60_000, DAY_MS + 1, 3 * DAY_MS];
  for (const [index, from] of froms.entries()) {
    for (const length of sample(lengths, (one) => (lengths.indexOf(one) + index) % 2 > 0)) {
      const { rows, total } = await pageOf({ from, to: from + length, pageSize: 500 });
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

test.each([100, 2_600])(
  "the pages of an address hold its events, newest first, of %d events",
  async (count) => {
    const { pageOf } = await openArchive(someEvents(count));
    const [{ fields } = { fields: { ip: "" } }] = (await pageOf(CUT)).rows;
    const filters = [{ field: "ip", op: "eq", value: [fields.ip] }];
    for (const page of [0, 1, 2, 3]) {
      const body = { ...CUT, pageSize: Math.ceil(count / 3), page };
      expect(await pageOf({ ...body, filters })).toEqual(await pageOf(body));
    }
  },
);
