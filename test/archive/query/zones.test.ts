import { afterAll, beforeAll, expect, test } from "vitest";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { narrowZones, readSearch } from "#archive/rules/query/read-search.ts";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import { exportHead, exportZones } from "#archive/search/export-events.ts";
import { searchGroups } from "#archive/search/read-union.ts";
import { searchZones } from "#archive/search/search-zones.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { DAY_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../archive-folder.ts";

/** The first day is a file of the first two zones, and in Postgres of the third. All zones have events of the same milliseconds. */
const ZONES = [101, 102, 103];
const DAYS = ["2026-11-20", "2026-11-21", "2026-11-22"] as const;
const START = Date.parse(`${DAYS[0]}T00:00:00Z`);
const PER_ZONE = 18;
const SPAN_MS = DAYS.length * DAY_MS;
const STEP = SPAN_MS / PER_ZONE;
const events = ZONES.flatMap((zoneId) =>
  Array.from({ length: PER_ZONE }, (_, index) => ({
    zoneId,
    event: makeEvent({
      logId: `e${index % 2 === 0 ? index : zoneId * 100 + index}`,
      occurredAt: START + index * STEP + (index % 3 === 0 ? 0 : zoneId),
      ruleId: index % 2 === 0 ? "942100" : `94${zoneId}`,
    }),
  })),
);
const naive = events.toSorted(
  (one, other) =>
    other.event.occurredAt - one.event.occurredAt ||
    Buffer.compare(Buffer.from(other.event.logId), Buffer.from(one.event.logId)) ||
    one.zoneId - other.zoneId,
);
const nameOf = (zoneId: number, logId: string) => `${zoneId} ${logId}`;

let database: MigratedDatabase;
let folder: ArchiveFolder;
beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
  await ensurePartitions(database, DAYS);
  for (const zone of ZONES) {
    const own = events.filter(({ zoneId }) => zoneId === zone).map(({ event }) => event);
    await storeEvents(database, zone, own, { expectNew: true });
    const entries = own.map((event) => ({
      occurredAt: event.occurredAt,
      logIdHash: hashEventKey(event),
      raw: Buffer.from(JSON.stringify({ logId: event.logId, log: "{}", labels: { zone } })),
    }));
    await insertRawBlocks(database.db, zone, await packRawBlocks(entries));
  }
  for (const zoneId of [101, 102]) await archiveDay(database, folder, DAYS[0], { zoneId });
});
afterAll(() => Promise.all([database.drop(), folder.close()]));

const { signal } = new AbortController();
const deps = () => ({
  queries: database,
  files: folder.files,
  openedBlocks: createOpenedBlocks(1_000_000),
});

function ask(body: object, zoneIds: readonly number[] = ZONES) {
  const read = readSearch({ from: START, to: START + SPAN_MS, ...body }, "search", "native");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return narrowZones({ zoneIds, plan: planSearch(read.search), isMasked: false });
}

test.each<[string, object, (event: WafEvent) => boolean]>([
  ["every event", {}, () => true],
  [
    "the events of a rule",
    { filters: [{ field: "rule", op: "eq", value: ["942100"] }] },
    ({ ruleId }) => ruleId === "942100",
  ],
  ...(
    [
      ["a window within two days", STEP + 101, DAY_MS + STEP + 102],
      ["a window that cuts its first day and its last", STEP + 101, 2 * DAY_MS + STEP + 102],
      ["a window that cuts its last day", 0, 2 * DAY_MS + STEP + 102],
    ] as const
  ).map(([what, from, to]): [string, object, (event: WafEvent) => boolean] => [
    `the events of ${what}`,
    { from: START + from, to: START + to },
    ({ occurredAt }) => occurredAt >= START + from && occurredAt < START + to,
  ]),
])(
  "the pages of several zones hold %s once, newest first, each with its zone and its record",
  async (_what, body, isAsked) => {
    const wanted = naive.filter(({ event }) => isAsked(event));
    expect(wanted.length).toBeGreaterThan(9);
    const shown: string[] = [];
    for (let page = 0; shown.length < wanted.length; page += 1) {
      const found = await searchZones(deps(), ask({ ...body, page, pageSize: 5 }), signal);
      expect(found).toMatchObject({ total: wanted.length, source: "archive" });
      expect(found.rows.length).toBeGreaterThan(0);
      for (const { zoneId, record } of found.rows)
        expect(JSON.parse(String(record))).toMatchObject({ labels: { zone: zoneId } });
      shown.push(...found.rows.map(({ zoneId, event }) => nameOf(zoneId, event.logId)));
    }
    expect(shown).toEqual(wanted.map(({ zoneId, event }) => nameOf(zoneId, event.logId)));
    const behind = await searchZones(deps(), ask({ ...body, page: 99 }), signal);
    expect(behind).toMatchObject({ rows: [], total: wanted.length });
  },
);

test.each<[string, object, readonly number[]]>([
  ["one zone", { filters: [{ field: "zone", op: "eq", value: ["102"] }] }, [102]],
  ["all but one", { filters: [{ field: "zone", op: "eq", value: ["102"], not: true }] }, [101, 103]],
  ["no zone", { filters: [{ field: "zone", op: "eq", value: ["7"] }] }, []],
])("a filter by zone finds the events of %s", async (_what, body, zones) => {
  const asked = ask(body);
  expect(asked.zoneIds).toEqual(zones);
  const { rows, total } = await searchZones(deps(), asked, signal);
  expect(total).toBe(zones.length * PER_ZONE);
  expect(new Set(rows.map(({ zoneId }) => zoneId))).toEqual(new Set(zones));
});

test("groups by zone count files and rows of Postgres together, alone and with another field", async () => {
  const group = async (...groupBy: string[]) => {
    const { zoneIds, plan } = ask({ groupBy });
    const { groups } = await searchGroups(deps(), zoneIds, plan, signal);
    return groups.map(({ key, count }) => [...Object.values(key), count]);
  };
  expect(await group("zone")).toEqual(ZONES.map((zone) => [String(zone), PER_ZONE]));
  const both = await group("zone", "rule");
  expect(both).toHaveLength(2 * ZONES.length);
  for (const zone of ZONES)
    for (const rule of ["942100", `94${zone}`])
      expect(both).toContainEqual([String(zone), rule, PER_ZONE / 2]);
  expect(await group("rule")).toContainEqual(["942100", (ZONES.length * PER_ZONE) / 2]);
});

test("a search by method is refused for several zones, with the rule", async () => {
  const { zoneIds, plan } = ask({ groupBy: ["method"] });
  await expect(searchGroups(deps(), zoneIds, plan, signal)).rejects.toThrow("one zone at a time");
});

test("an export of several zones is the exports of its zones, one after the other, and each event names its zone", async () => {
  const asked = ask({});
  const textOf = async (zoneIds: readonly number[], form: "csv" | "ndjson", isMasked = false) => {
    const about = {
      form,
      choice: null,
      isZoned: zoneIds.length > 1,
      ocsf: { vendor: null, actions: BUILT_IN_ACTIONS },
      signal,
    };
    const parts: string[] = [];
    for await (const part of exportZones((_, work) => work(deps()), { ...asked, zoneIds, isMasked }, about))
      parts.push(String(part));
    return `${exportHead(about)}${parts.join("")}`;
  };
  const [first = "", ...lines] = (await textOf(ZONES, "csv")).split("\r\n").slice(0, -1);
  expect(first).toMatch(/^timestamp,logId,.*,action,zone$/);
  const single = await Promise.all(ZONES.map((zone) => textOf([zone], "csv")));
  const expected = single.flatMap((text, index) =>
    text
      .split("\r\n")
      .slice(1, -1)
      .map((line) => `${line},${ZONES[index]}`),
  );
  expect(lines).toEqual(expected);
  expect(
    (await textOf(ZONES, "csv", true))
      .split("\r\n")
      .slice(1, -1)
      .map((line) => line.split(",").at(-1)),
  ).toEqual(ZONES.flatMap((zone) => Array.from({ length: PER_ZONE }, () => String(zone))));
  const objects = (await textOf(ZONES, "ndjson"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { logId: string; zone: number });
  expect(objects.map(({ logId, zone }) => `${logId} ${zone}`)).toEqual(
    lines.map((line) => `${line.split(",")[1]} ${line.split(",").at(-1)}`),
  );
});
