import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { toCsvLine } from "#archive/rules/export-lines.ts";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { readSearch } from "#archive/rules/query/read-search.ts";
import type { EventSource, EventsFile } from "#archive/rules/sql/event-source.ts";
import { EXPORT_COLUMNS, exportEvents } from "#archive/rules/sql/export-events.ts";
import { fetchRows, findMatches, readMatches, readRows } from "#archive/rules/sql/find-rows.ts";
import { groupColumns, groupEvents, readGroups } from "#archive/rules/sql/group-events.ts";
import type { Piece } from "#archive/rules/sql/to-condition.ts";
import { readSearch as readNaively } from "#emulator/query/request.ts";
import { DAY_MS } from "#lib/units.ts";
import {
  ARCHIVE_FORMAT,
  EVENT_FIELD_IDS,
  EVENT_FILE_COLUMNS,
  storedColumns,
  toFileColumnSql,
} from "#model/archive-layout.ts";
import { DIMENSIONS } from "#model/kinds.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { createFractions } from "../../detection/support/histories.ts";
import { draws, sample } from "../../support/sample.ts";
import { type ArchiveFolder, openFolder } from "../archive-folder.ts";
import { createDraw, DAYS, drawBody, drawEvents, FIRST_DAY, HOSTILE } from "../query/draw.ts";
import { createNaiveSearch } from "../query/naive-search.ts";
import { mustRead } from "../query/world.ts";
import { writeEventsFile } from "./write-events-file.ts";

const draw = createDraw(createFractions(20_261_122));
const events = drawEvents(draw, 1_000, "");
const naive = createNaiveSearch(events);
let archive: ArchiveFolder;
/** Of both versions. */
let files: EventsFile[];

beforeAll(async () => {
  archive = await openFolder();
  files = DAYS.map((day, index) => ({
    path: path.join(archive.folder, `${day}.parquet`),
    format: 1 + (index % 2),
  }));
  for (const [index, file] of files.entries()) {
    const ofDay = events.filter(({ occurredAt }) => Math.floor((occurredAt - FIRST_DAY) / DAY_MS) === index);
    await writeEventsFile(archive.duckdb, file.path, ofDay, file.format);
  }
});
afterAll(() => archive.close());

async function run(statements: readonly Piece[]): Promise<string[]> {
  const results = await archive.duckdb.run(statements, {});
  return (results.at(-1) ?? []).map(([row]) => (typeof row === "string" ? row : ""));
}

function ask(body: object) {
  const read = readNaively(body, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return { search: read.search, plan: planSearch(mustRead(body)) };
}

/** The first days are files, and of the last `open` ones the rows that pass are in a CSV file. */
async function openSource(body: object, columns: readonly string[], open: number): Promise<EventSource> {
  const inFiles = files.slice(0, files.length - open);
  const found = naive(ask({ ...body, groupBy: [], page: 0 }).search);
  if (found.kind !== "rows") throw new Error("no rows");
  const rest = found.all.filter(({ occurredAt }) => occurredAt >= FIRST_DAY + inFiles.length * DAY_MS);
  if (rest.length === 0) return { files: inFiles, openRows: null };
  const lines = rest.map(({ occurredAt, fields }) =>
    columns
      .map((column) => {
        if (column === "occurred_at") return String(occurredAt);
        const text = fields[column === "rule_id" ? "ruleId" : column] ?? "";
        return `"${text.replaceAll('"', '""')}"`;
      })
      .join(","),
  );
  const csv = path.join(archive.folder, "open.csv");
  await writeFile(csv, lines.map((line) => `${line}\n`).join(""));
  return { files: inFiles, openRows: { path: csv, columns } };
}

test("DuckDB's groups are the naive ones, from files, from open rows and from both", async () => {
  for (let round = 0; round < draws(8, 60); round++) {
    const body = { ...drawBody(draw, events), groupBy: [draw.one(DIMENSIONS), draw.one(DIMENSIONS)] };
    const { search, plan } = ask(body);
    const source = await openSource(body, groupColumns(plan), draw.below(files.length));
    const wanted = naive(search);
    if (wanted.kind !== "groups") throw new Error("no groups");
    const found = readGroups(await run(groupEvents(source, plan)), plan);
    const groups = wanted.page.map(({ sparkline, ...group }) => ({ ...group, sparkline: sparkline ?? null }));
    expect({ body, ...found }).toEqual({ body, total: wanted.total, groups });
  }
}, 120_000);

test("DuckDB's pages are the naive ones", async () => {
  for (let round = 0; round < draws(8, 60); round++) {
    const body = { ...drawBody(draw, events), groupBy: [] };
    const { search, plan } = ask(body);
    const wanted = naive(search);
    if (wanted.kind !== "rows") throw new Error("no rows");
    const newerOpen = files.map(() => 0);
    const matches = readMatches(await run([findMatches(files, plan, newerOpen)]));
    const total = matches.reduce((sum, one) => sum + one.total, 0);
    const places = matches
      .filter(({ rows }) => rows.length > 0)
      .sort((one, other) => one.file - other.file)
      .map(({ file, rows }) => ({ path: files[file]?.path ?? "", format: files[file]?.format ?? 1, rows }));
    const rows = places.length === 0 ? [] : readRows(await run([fetchRows(places)])).reverse();
    const page = rows.map(({ logId, occurredAt, fields, message }) => ({
      logId,
      occurredAt,
      fields,
      message,
    }));
    expect({ body, total, page }).toEqual({ body, total: wanted.total, page: wanted.page });
  }
}, 120_000);

test("DuckDB writes the lines of CSV that toCsvLine writes, whatever the texts", async () => {
  const character = fc.oneof(
    fc.string({ unit: "binary", maxLength: 3 }),
    fc.constantFrom(
      "\u001b",
      "\u202e",
      "\u061c",
      "\uFEFF",
      String.raw`\u00aF`,
      "\u0085",
      "\\",
      "漢",
      '"',
      ",",
      "\r\n",
      "=",
      "\uFF1D",
    ),
  );
  const text = fc
    .array(character, { maxLength: 8 })
    .map((parts) => parts.join("").replaceAll("\0", "").toWellFormed());
  // The first row has a line end that is not the file's own.
  const first = Array.from({ length: 10 }, () => "\r\n");
  const rows = [first, ...fc.sample(fc.array(text, { minLength: 10, maxLength: 10 }), draws(75, 400))];
  const path = `${archive.folder}/any.csv`;
  const quoted = rows.map((cells, at) =>
    [at, ...cells.map((cell) => `"${cell.replaceAll('"', '""')}"`)].join(","),
  );
  await writeFile(path, quoted.map((line) => `${line}\n`).join(""));
  const target = `${archive.folder}/lines.csv`;
  const openRows = { path, columns: EXPORT_COLUMNS };
  await run(
    exportEvents({ openRows }, planSearch(mustRead({ from: 0, to: 1_000 })), {
      form: { csv: { zone: null } },
      target,
    }),
  );
  const wanted = rows.map((cells, at) => toCsvLine([String(at), ...cells])).reverse();
  expect((await readFile(target, "utf8")).split("\r\n")).toEqual(wanted.join("").split("\r\n"));
});

/** SQL for the rows of a file with every column of the current version. */
function withColumns({ path: file, format }: EventsFile): string {
  const columns = EVENT_FILE_COLUMNS.map(({ name }) => `${toFileColumnSql(name, format)} as ${name}`);
  return `select ${columns.join(", ")} from read_parquet('${file}')`;
}

test("days with and without field ids are searched together", async () => {
  const [old, ...others] = files;
  if (old === undefined) throw new Error("no file");
  const withIds = path.join(archive.folder, "with-ids.parquet");
  await archive.duckdb.run([
    { sql: `copy (${withColumns(old)}) to '${withIds}' (format parquet, ${EVENT_FIELD_IDS})` },
  ]);
  const { plan } = ask({ from: FIRST_DAY, to: FIRST_DAY + 5 * DAY_MS, groupBy: ["ruleId"] });
  const group = async (days: readonly EventsFile[]) =>
    readGroups(await run(groupEvents({ files: days, openRows: null }, plan)), plan);
  const wanted = await group(files);
  expect(wanted.total).toBeGreaterThan(3);
  expect(await group([{ path: withIds, format: ARCHIVE_FORMAT }, ...others])).toEqual(wanted);
  expect(await group([...others, { path: withIds, format: ARCHIVE_FORMAT }])).toEqual(wanted);
});

test("host and path are found and grouped alike in files that have them and in files that do not", async () => {
  const old = files.map(({ path: file }) => ({ path: `${file}.old`, format: 1 }));
  for (const [at, file] of files.entries()) {
    const columns = storedColumns(1).join(", ");
    const sql = `copy (select ${columns} from read_parquet('${file.path}')) to '${old[at]?.path}' (format parquet)`;
    await archive.duckdb.run([{ sql }]);
  }
  const parts = ["host", "path"] as const;
  for (const [index, field] of [...parts, ...parts].entries()) {
    const urls = events.map(({ url }) => url ?? "");
    const value = [toUrlPart(field, draw.one(urls.filter((url) => url !== "")))];
    const filters = [{ field, op: ["eq", "contains"][index % 2], value }];
    const body = { from: FIRST_DAY, to: FIRST_DAY + 5 * DAY_MS, filters, groupBy: [parts[index % 2]] };
    const read = readSearch(body, "search", "native");
    if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
    const plan = planSearch(read.search);
    const asked = async (days: readonly EventsFile[]) =>
      readGroups(await run(groupEvents({ files: days, openRows: null }, plan)), plan);
    const places = async (days: readonly EventsFile[]) =>
      readMatches(
        await run([
          findMatches(
            days,
            plan,
            days.map(() => 0),
          ),
        ]),
      ).sort((one, other) => one.file - other.file);
    const found = await asked(files);
    expect(found.total).toBeGreaterThan(0);
    expect(found).toEqual(await asked(old));
    expect(await places(files)).toEqual(await places(old));
  }
});

const OPS = ["eq", "in", "contains", "wildcard"];

test("a text that is asked for is never SQL nor a pattern", async () => {
  for (const [index, text] of HOSTILE.entries()) {
    // The gate asks with two of the operators for each text.
    for (const op of sample(OPS, (one) => (OPS.indexOf(one) + index) % 2 > 0)) {
      const body = {
        from: FIRST_DAY,
        to: FIRST_DAY + 5 * DAY_MS,
        filters: [{ field: draw.one(DIMENSIONS), op, value: [text, "' or '1'='1"] }],
        groupBy: ["feature"],
      };
      const { search, plan } = ask(body);
      const wanted = naive(search);
      const found = readGroups(await run(groupEvents({ files, openRows: null }, plan)), plan);
      expect({ body, total: found.total }).toEqual({ body, total: wanted.total });
    }
  }
}, 120_000);
