import { afterAll, beforeAll, expect, test } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { DAY_MS } from "#lib/units.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { toDay } from "#model/horizon.ts";
import { storeEvents } from "#test/db/new-events.ts";
import { makeEvent } from "#test/detection/trend-support.ts";
import { ask, openApiWorld } from "#test/faces/http/api/api-world.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "./archive-folder.ts";

/** Events of an old day, which is a file of zone 101 and in Postgres of zone 102, and of today. */
const world = openApiWorld();
const NOW = Date.now();
const OLD = Math.floor((NOW - 30 * DAY_MS) / DAY_MS) * DAY_MS;
const TODAY = NOW - 60_000;
const REQUEST = "8f14e45fceea167a5a36dedd4bea2543";
const IDLESS = { ip: "203.0.113.7", url: "https://shop.example.com/cart?from=203.0.113.7" };
const EVENTS = [101, 102].flatMap((zone) =>
  [OLD, TODAY].flatMap((at) =>
    Array.from({ length: 13 }, (_, index) => ({
      zone,
      event: makeEvent({
        ...IDLESS,
        logId: `${zone}-${at === OLD ? "old" : "new"}-${index}`,
        occurredAt: at + index * 1_000,
        requestId: index === 0 ? `${REQUEST.slice(0, -3)}${zone}` : null,
        url: index === 1 ? `https://shop.example.com/only/${at === OLD ? "old" : "new"}` : IDLESS.url,
      }),
    })),
  ),
);
const SHARED = makeEvent({ logId: "shared", occurredAt: OLD + 60_000, requestId: REQUEST, ...IDLESS });

interface Found {
  readonly by: string | null;
  readonly total: number;
  readonly requestIdsFrom: string | null;
  readonly items: readonly { zone: number; logId: string; at: string; address: string; url: string }[];
}

let folder: ArchiveFolder;
beforeAll(async () => {
  folder = await openFolder();
  const database = world.database();
  await ensurePartitions(database, [toDay(OLD), toDay(NOW), toDay(NOW - DAY_MS)]);
  for (const zone of [101, 102]) {
    const own = EVENTS.filter((one) => one.zone === zone).map(({ event }) => event);
    await storeEvents(database, zone, [...own, SHARED], { expectNew: true });
  }
  await archiveDay(database, folder, toDay(OLD), { zoneId: 101 });
});
afterAll(() => folder.close());

async function open(...role: Parameters<typeof world.key>) {
  const { url } = await world.start({}, {}, { files: folder.files });
  const key = await world.key(...role);
  return (query: Record<string, string>, status = 200) =>
    ask<Found>(url, `/api/v1/find?${new URLSearchParams(query).toString()}`, key, { status });
}
const named = ({ items }: Found) => items.map(({ zone, logId }) => `${zone} ${logId}`);

test("a log id, a request id or a part of a path finds the event in files and in Postgres, of all zones or of some", async () => {
  const find = await open("reader");
  const cases = [
    ["101-old-3", "log id", ["101 101-old-3"]],
    ["102-old-3", "log id", ["102 102-old-3"]],
    ["102-new-3", "log id", ["102 102-new-3"]],
    [` ${REQUEST} `, "request id", ["101 shared", "102 shared"]],
    // The newest that has it ends the search.
    [`${REQUEST.slice(0, -3)}101`, "request id", ["101 101-new-0"]],
    ["/only/OLD", "path", ["101 101-old-1", "102 102-old-1"]],
    ["https://other.example.com/only/new?x=1", "path", ["101 101-new-1", "102 102-new-1"]],
  ] as const;
  for (const [text, by, events] of cases) {
    const found = await find({ text });
    expect({ text, by: found.by, events: named(found).sort() }).toEqual({
      text,
      by,
      events,
    });
  }
  expect(named(await find({ text: REQUEST, zone: "102" }))).toEqual(["102 shared"]);
  const many = await find({ text: "/cart" });
  expect(many).toMatchObject({ by: "path", total: 24 });
  expect(many.items).toHaveLength(20);
  const times = many.items.map(({ at }) => at);
  expect(times).toEqual(times.toSorted().reverse());
});

test("no event, an older event than --from, a part of an id and a text of other parts of a URL find nothing", async () => {
  const find = await open("reader");
  for (const query of [
    { text: "nothing" },
    { text: "101-old-3", from: new Date(NOW - 20 * DAY_MS).toISOString() },
    { text: REQUEST.slice(0, 20) },
    { text: "shop.example.com" },
    { text: "https://shop.example.com" },
    { text: "?from=203" },
  ])
    expect({ query, ...(await find(query)) }).toMatchObject({ query, by: null, total: 0, items: [] });
});

test("an empty text, one of two lines, one that is too long, an unknown zone and another key's zone are refused", async () => {
  const find = await open("reader", { zoneIds: [101] });
  for (const text of ["", "a\nb", "a".repeat(301)]) await find({ text }, 400);
  await find({ text: "a", zone: "102" }, 403);
  expect(named(await find({ text: REQUEST }))).toEqual(["101 shared"]);
  const all = await open("reader");
  await all({ text: "a", zone: "999" }, 422);
});

test("a masked key finds by id, sees no whole address, and may not ask for one", async () => {
  const find = await open("reader", { isMasked: true });
  const [first] = (await find({ text: "101-new-3" })).items;
  expect(first).toMatchObject({
    address: "203.0.113.*",
    url: expect.not.stringContaining("203.0.113.7") as string,
  });
  for (const text of ["203.0.113.7", "203.0.113."]) await find({ text }, 422);
});

test("an answer without an event says from when on events have a request id, of files that hold none as well", async () => {
  const find = await open("reader");
  const first = async (query: object) => (await find({ text: "nothing", ...query })).requestIdsFrom;
  const toIso = (at: number) => new Date(at).toISOString();
  expect(await first({})).toBe(toIso(OLD));
  expect(await first({ from: toIso(TODAY + 5_000) })).toBeNull();
  const setFormat = (format: number) =>
    world.database().pool.query("update archive_files set format = $1 where kind = 'events'", [format]);
  await setFormat(1);
  const [one, all] = [await first({ zone: "101" }), await first({})];
  await setFormat(ARCHIVE_FORMAT);
  expect([one, all]).toEqual([toIso(TODAY), toIso(OLD)]);
});
