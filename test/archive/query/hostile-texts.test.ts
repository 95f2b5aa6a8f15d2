import { afterAll, beforeAll, expect, test } from "vitest";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { searchRows } from "#archive/search/find-rows.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { DAY_MS } from "#lib/units.ts";
import { DIMENSIONS } from "#model/kinds.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { sample } from "../../support/sample.ts";
import { type ArchiveFolder, openFolder } from "../archive-folder.ts";
import { DAYS, FIRST_DAY, HOSTILE } from "./draw.ts";
import { createNaiveSearch } from "./naive-search.ts";
import { expectSame, mustRead, ZONE } from "./world.ts";

const WINDOW = { from: FIRST_DAY, to: FIRST_DAY + 10_000 };
let database: MigratedDatabase;
let folder: ArchiveFolder;

beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
  await ensurePartitions(database, DAYS);
});

afterAll(() => Promise.all([database.drop(), folder.close()]));

const deps = () => ({ queries: database, files: folder.files });

const everywhere = (text: string, index: number) => {
  const fields = Object.fromEntries(DIMENSIONS.map((name) => [name, text]));
  return makeEvent({ occurredAt: FIRST_DAY + index, logId: `e${index}`, message: text, ...fields });
};

async function find(body: object): Promise<string[]> {
  const { rows } = await searchRows(
    deps(),
    ZONE,
    planSearch(mustRead({ ...WINDOW, ...body })),
    new AbortController().signal,
  );
  return rows.map(({ logId }) => logId);
}

test("S6: no text of a request is ever read as anything but text, in any field, by any operator", async () => {
  const events = HOSTILE.map(everywhere);
  await storeEvents(database, ZONE, events, { expectNew: true });
  const naive = createNaiveSearch(events);
  const ops = ["eq", "in", "contains", "wildcard"];
  const asks = DIMENSIONS.flatMap((field) => ops.map((op) => ({ field, op })));
  const bodies = HOSTILE.flatMap((text, index) => [
    { query: text },
    // The gate asks with every operator for each text, and in each field with every operator, but not with all texts.
    ...sample(asks, ({ field, op }) => (DIMENSIONS.indexOf(field) + ops.indexOf(op) + index) % 9 > 0).map(
      (one) => ({ filters: [{ ...one, value: [text, "' or '1'='1"] }] }),
    ),
  ]);
  const ask = async () => {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
      const asked = { ...WINDOW, to: FIRST_DAY + 1_000, pageSize: 5, ...body };
      await expectSame(deps(), naive, asked, { hasExports: "query" in body });
    }
  };
  await Promise.all(Array.from({ length: 6 }, ask));
  expect(bodies).toEqual([]);
});

test("masked addresses lie in a network when all they leave open does, in whatever form", async () => {
  const ips = [
    "198.51.100.7",
    "198.51.100.*",
    "198.51.*.*",
    "2001:db8:5:*",
    "2001:db8:5::*",
    "2001:DB8:5::9",
    "nothing",
  ];
  const zone = ips.map((ip, index) => makeEvent({ occurredAt: FIRST_DAY + 5_000 + index, logId: ip, ip }));
  await storeEvents(database, ZONE, zone, { expectNew: true });
  const within = (...value: string[]) => find({ filters: [{ field: "ip", op: "cidr", value }] });
  expect(await within("198.51.100.0/24")).toEqual(["198.51.100.*", "198.51.100.7"]);
  expect(await within("198.51.100.0/25")).toEqual(["198.51.100.7"]);
  expect(await within("198.0.0.0/10")).toEqual(["198.51.*.*", "198.51.100.*", "198.51.100.7"]);
  expect(await within("2001:db8:5::/48")).toEqual(["2001:DB8:5::9", "2001:db8:5::*", "2001:db8:5:*"]);
  expect(await within("2001:db8:5::/64", "198.51.100.7")).toEqual(["2001:DB8:5::9", "198.51.100.7"]);
});

test("case is ignored beyond ASCII; a sigma is a sigma, a Kelvin sign no k and a dotted I no i", async () => {
  const urls = ["/ΟΔΟΣ", "/οδος", "/ΟΔΟΣΑ", "/\u212A", "/k", "/\u0130", "/i", "/STRASSE", "/straße", "/ПУТЬ"];
  const events = urls.map((url, index) =>
    makeEvent({ occurredAt: FIRST_DAY + 7_000 + index, logId: url, url }),
  );
  await storeEvents(database, ZONE, events, { expectNew: true });
  const contains = (needle: string) =>
    find({ from: FIRST_DAY + 7_000, filters: [{ field: "url", op: "contains", value: [needle] }] });
  expect(await contains("οδοσ")).toEqual(["/ΟΔΟΣΑ", "/οδος", "/ΟΔΟΣ"]);
  expect(await contains("ΔΟς")).toEqual(["/ΟΔΟΣΑ", "/οδος", "/ΟΔΟΣ"]);
  expect(await contains("K")).toEqual(["/k"]);
  expect(await contains("\u212A")).toEqual(["/\u212A"]);
  expect(await contains("I")).toEqual(["/i"]);
  expect(await contains("путь")).toEqual(["/ПУТЬ"]);
  expect(await contains("ss")).toEqual(["/STRASSE"]);
});

test("S17: a cell that a spreadsheet would compute is guarded, also the id; others are left as they are", async () => {
  const texts = ["=1+1", "+1", "-1", "@a", "\ta", "\ra", "\na", "\uFF1D1", "'=1", "a=1", "\uFF01", '=",1"'];
  const events = texts.map((text, index) =>
    makeEvent({ occurredAt: FIRST_DAY + 9_000 + index, logId: `${text}${index}`, ua: text, action: text }),
  );
  await storeEvents(database, ZONE, events, { expectNew: true });
  await expectSame(deps(), createNaiveSearch(events), {
    from: FIRST_DAY + 9_000,
    to: FIRST_DAY + 10_000,
  });
});

test("an export goes on where its part ended, whatever the last id is", async () => {
  const events = Array.from({ length: 12_600 }, (_, index) =>
    // The first part has 12,000 events and ends within a millisecond.
    makeEvent({
      occurredAt: FIRST_DAY + DAY_MS + Math.floor(index / 3_500),
      logId: `"=,\n${index}`,
      url: "a,b",
    }),
  );
  await storeEvents(database, ZONE, events, { expectNew: true });
  await expectSame(deps(), createNaiveSearch(events), {
    from: FIRST_DAY + DAY_MS,
    to: FIRST_DAY + 2 * DAY_MS,
  });
});
