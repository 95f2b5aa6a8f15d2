import { afterAll, beforeAll, expect, test } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { type ArchiveFolder, openFolder } from "../archive-folder.ts";
import { DAYS, FIRST_DAY, HOSTILE } from "./draw.ts";
import { createNaiveSearch } from "./naive-search.ts";
import { expectSame, ZONE } from "./world.ts";

const WINDOW = { from: FIRST_DAY, to: FIRST_DAY + 10_000, pageSize: 20 };
const URLS = [
  "/ΟΔΟΣ",
  "/Éa",
  "/éb",
  "/STRASSE",
  "/straße",
  "/ПУТЬ",
  "/100%",
  "/a_b",
  "/a\\b",
  '/"q"',
  "/{x,y}",
  "",
];
const IPS = ["198.51.100.7", "198.51.100.*", "198.51.*.*", "2001:db8:5::*", "2001:DB8:5::9", "nothing", ""];

let database: MigratedDatabase;
let folder: ArchiveFolder;
const events = [...URLS, ...HOSTILE].map((url, index) =>
  makeEvent({
    occurredAt: FIRST_DAY + index,
    logId: `e${index}`,
    url,
    ua: `${url} ${index}`,
    ip: IPS[index % IPS.length] ?? "",
  }),
);
const naive = createNaiveSearch(events);

beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
  await ensurePartitions(database, DAYS);
  await storeEvents(database, ZONE, events, { expectNew: true });
});
afterAll(() => Promise.all([database.drop(), folder.close()]));

const deps = () => ({ queries: database, files: folder.files });

const absent = Array.from({ length: 40 }, (_, index) => `absent${index}`);
const networks = Array.from({ length: 40 }, (_, index) => `203.0.${index}.0/24`);

test.each([
  { field: "url", op: "contains", value: [...absent, "δ", "É", "ß", "%", "_", "\\", '"', "{x", ...HOSTILE] },
  { field: "url", op: "wildcard", value: [...absent, "/É*", "*SE", "", "*%", "*_*"] },
  { field: "ua", op: "contains", value: [...absent, "путь", "NULL"] },
  { field: "url", op: "in", value: [...absent, ...URLS] },
  { field: "ip", op: "cidr", value: [...networks, "198.51.100.0/24", "2001:db8:5::/48"] },
])(
  "many values of $op on $field find what they find one by one, in pages, groups and exports",
  async (filter) => {
    await expectSame(deps(), naive, { ...WINDOW, filters: [filter] });
    await expectSame(deps(), naive, { ...WINDOW, filters: [filter], groupBy: ["url"], buckets: 4 });
    await expectSame(deps(), naive, { ...WINDOW, filters: [filter], groupBy: ["country"] });
  },
);

test("the most tests that a request may ask make statements that Postgres takes", async () => {
  const many = (n: number) => Array.from({ length: 1_000 }, (_, index) => `${n}-${index}`);
  const filters = [0, 1, 2, 3, 4].map((n) => ({ field: "url", op: "contains", value: [...many(n), "/"] }));
  expect(await expectSame(deps(), naive, { ...WINDOW, filters: filters.map(cut) })).toBe("events");
});

const cut = ({ value, ...filter }: { field: string; op: string; value: string[] }) => ({
  ...filter,
  value: value.slice(-1_000),
});
