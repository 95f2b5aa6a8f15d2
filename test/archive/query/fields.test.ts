import { afterAll, beforeAll, expect, test } from "vitest";
import { MAX_METHOD_EVENTS } from "#archive/rules/query/estimate-cost.ts";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { readSearch } from "#archive/rules/query/read-search.ts";
import { exportEvents } from "#archive/search/export-events.ts";
import { searchRows } from "#archive/search/find-rows.ts";
import { exportParquet, searchGroups } from "#archive/search/read-union.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { DAY_MS } from "#lib/units.ts";
import { FIELDS, type FieldName } from "#model/fields.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { sample } from "../../support/sample.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../archive-folder.ts";
import { DAYS, END, FIRST_DAY, HOSTILE } from "./draw.ts";
import { ZONE } from "./world.ts";

const HOSTS = ["https://shop.example.com", "HTTPS://u@API.example.com:8443", ""];
const PATHS = ["/catalog/item", "/login", "/", ...HOSTILE.slice(0, 20).map((text) => `/${text}`)];
const QUERIES = ["", "?id=1", "?id=2&next=/catalog/item", "#top"];
const METHODS = ["GET", "POST", "PURGE"];
const URLS = HOSTS.flatMap((host) =>
  PATHS.flatMap((path) => QUERIES.map((query) => `${host}${path}${query}`)),
);

/** Every second event has an entry of the list as its record. The others have a row of a search, or none. */
const methodOf = (index: number) => (index % 2 === 0 ? (METHODS[(index / 2) % 3] ?? "") : "");
const events = [...URLS, "", null].map((url, index) =>
  makeEvent({
    url,
    occurredAt: FIRST_DAY + Math.floor((index * 5 * DAY_MS) / (URLS.length + 2)),
    logId: `e${String(index).padStart(4, "0")}`,
    ip: "203.0.113.7",
    asn: "64500",
    country: "DE",
    action: index % 3 === 0 ? "log" : "block",
  }),
);

function recordOf(event: WafEvent, index: number): Buffer {
  const entry = { logId: event.logId, timestamp: event.occurredAt };
  const row = { ...entry, log: {}, fields: {} };
  const listed = { ...entry, log: "{}", labels: { method: methodOf(index) } };
  return Buffer.from(JSON.stringify(index % 2 === 0 ? listed : row));
}

let database: MigratedDatabase;
let folder: ArchiveFolder;
beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
  await ensurePartitions(database, DAYS);
  await storeEvents(database, ZONE, events, { expectNew: true });
  const entries = events.flatMap((event, index) =>
    index % 4 === 3
      ? []
      : [{ occurredAt: event.occurredAt, logIdHash: hashEventKey(event), raw: recordOf(event, index) }],
  );
  await insertRawBlocks(database.db, ZONE, await packRawBlocks(entries));
});
afterAll(() => Promise.all([database.drop(), folder.close()]));

function plan(body: object) {
  const read = readSearch({ from: FIRST_DAY, to: END, ...body }, "search", "native");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return planSearch(read.search);
}

const { signal } = new AbortController();
const deps = () => ({ queries: database, files: folder.files });

function valueOf(event: WafEvent, field: FieldName): string {
  if (field === "host" || field === "path") return toUrlPart(field, event.url ?? "");
  if (field === "method") return methodOf(events.indexOf(event));
  return event[FIELDS[field] as "url"] ?? "";
}

const SEARCHES = [
  { field: "path", op: "eq", value: ["/catalog/item"] },
  { field: "path", op: "eq", value: ["/"] },
  { field: "path", op: "in", value: ["/login", "/catalog/item", ""] },
  { field: "path", op: "contains", value: ["LOG", "$"] },
  { field: "path", op: "wildcard", value: ["/cat*em", "*'*"] },
  { field: "host", op: "eq", value: ["api.example.com"] },
  { field: "host", op: "in", value: ["", "shop.example.com"] },
  { field: "host", op: "contains", value: ["shop"] },
  { field: "method", op: "eq", value: ["POST"] },
  { field: "method", op: "in", value: ["", "PURGE"] },
  { field: "method", op: "contains", value: ["ost"] },
  { field: "method", op: "wildcard", value: ["p*g*"] },
] as const;

const GROUPED = ["host", "path", "method"] as const;

/** The plain meaning of an operator, in code that shares nothing with the search. */
function isMatch(op: string, wanted: string, text: string): boolean {
  const [one, other] = [wanted.toLowerCase(), text.toLowerCase()];
  if (op === "contains") return other.includes(one);
  if (op === "wildcard") {
    const parts = one.split("*").map((part) => part.replaceAll(/[^a-z0-9]/g, String.raw`\$&`));
    return new RegExp(`^${parts.join(".*")}$`, "s").test(other);
  }
  return wanted === text;
}

/**
 * Compares every filter, and every filter negated, with its plain meaning. Each groups by another field with each
 * `turn`, so that after three turns every filter has been grouped by every field.
 */
async function expectAnswers(turn: number): Promise<void> {
  // The gate asks every second filter negated, and the others with the next turn.
  for (const [index, filter] of SEARCHES.entries())
    for (const not of sample([false, true], (one) => one !== (index + turn) % 2 > 0)) {
      const wanted = events.filter(
        (event) => filter.value.some((one) => isMatch(filter.op, one, valueOf(event, filter.field))) !== not,
      );
      const body = { filters: [{ ...filter, not }], pageSize: 500 };
      const { rows, total } = await searchRows(deps(), ZONE, plan(body), signal);
      const ids = wanted.map(({ logId }) => logId).reverse();
      expect({ body, total, ids: rows.map(({ logId }) => logId) }).toEqual({ body, total: ids.length, ids });
      const field = GROUPED[(index + turn) % GROUPED.length] ?? "host";
      const found = await searchGroups(deps(), [ZONE], plan({ ...body, groupBy: [field] }), signal);
      const counts = Map.groupBy(wanted, (event) => valueOf(event, field));
      expect({
        body,
        field,
        groups: new Map(found.groups.map(({ key, count }) => [key[field], count])),
      }).toEqual({
        body,
        field,
        groups: new Map(Array.from(counts, ([value, of]) => [value, of.length])),
      });
    }
  const chunks: Buffer[] = [];
  const exported = plan({ filters: [{ field: "method", op: "eq", value: ["post"] }] });
  for await (const chunk of exportEvents((_, work) => work(deps()), ZONE, exported, { form: "json", signal }))
    chunks.push(chunk);
  const lines = Buffer.concat(chunks).toString().trimEnd().split("\n");
  const posted = events.filter((event) => valueOf(event, "method") === "POST").map(({ logId }) => logId);
  expect(lines.map((line) => (JSON.parse(line) as string[])[1])).toEqual(posted.toReversed());
  const { path, remove } = await exportParquet(deps(), [ZONE], exported, signal);
  const sql = `select log_id, method, request_id, facts from read_parquet('${path}') order by log_id`;
  const [rows] = await folder.duckdb.run([{ sql }]);
  await remove();
  expect(rows).toEqual(posted.map((logId) => [logId, "POST", "", null]));
}

test("host, path and method give the same answers from Postgres, from both and from the archive, also negated", async () => {
  await expectAnswers(0);
  for (const day of DAYS.slice(0, 3)) await archiveDay(database, folder, day);
  await expectAnswers(1);
  for (const day of DAYS.slice(3)) await archiveDay(database, folder, day);
  await expectAnswers(2);
}, 300_000);

test("groups by path have one row for each path, whatever the query, and are named as they were asked for", async () => {
  const { groups } = await searchGroups(
    deps(),
    [ZONE],
    plan({ groupBy: ["path", "rule"], filters: [{ field: "path", op: "eq", value: ["/catalog/item"] }] }),
    signal,
  );
  expect(groups.map(({ key, count }) => ({ key, count }))).toEqual([
    { key: { path: "/catalog/item", rule: "942100" }, count: HOSTS.length * QUERIES.length },
  ]);
});

test("a search about the method that would read too many records is refused, and names the limit", async () => {
  const many = Array.from({ length: MAX_METHOD_EVENTS + 1 }, (_, index) =>
    makeEvent({ occurredAt: FIRST_DAY + index, logId: `m${index}` }),
  );
  await storeEvents(database, ZONE + 1, many, { expectNew: true });
  const asked = plan({ groupBy: ["method"] });
  await expect(searchGroups(deps(), [ZONE + 1], asked, signal)).rejects.toThrow(
    /10,000 records.*10,001 events/,
  );
});
