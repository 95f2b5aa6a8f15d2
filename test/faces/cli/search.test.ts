import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EXPORT_HEADER } from "#archive/rules/export-lines.ts";
import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import { exportEvents } from "#archive/search/export-events.ts";
import { countUnfiltered } from "#archive/search/find-rows.ts";
import { parseConfig } from "#config/config.ts";
import { listAudit } from "#db/people/audit-trail.ts";
import { archiveCommand } from "#faces/cli/archive/archive.ts";
import { exportCommand } from "#faces/cli/export/export.ts";
import { createExportProgress } from "#faces/cli/export/save-export.ts";
import { searchCommand } from "#faces/cli/search/search.ts";
import { withSearch } from "#faces/cli/store/store-command.ts";
import { DAY_MS } from "#lib/units.ts";
import type { Role } from "#model/kinds.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../../archive/archive-folder.ts";
import { listFiles, openArchiveWorld } from "../../archive/files/archive-world.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { SERVICE } from "../http/default-service.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { startProxy } from "./proxy.ts";
import { type Ran, runStoreCommand, type Terminal } from "./run-store-command.ts";

/** The first day is in the archive, the second in Postgres. */
const DAY = "2026-11-15";
const DAY_START = Date.parse(DAY);
const NOW = DAY_START + 5 * DAY_MS;
const world = await openArchiveWorld();
const out = makeTemporaryFolder("exports");
const days = makeTemporaryFolder("days");
const bodies = makeTemporaryFolder("bodies");
let folder: ArchiveFolder;
let environment: Record<string, string>;

beforeAll(async () => {
  folder = await openFolder();
  const old = Array.from({ length: 30 }, (_, n) =>
    makeEvent({ logId: `old${n}`, occurredAt: DAY_START + n * 60_000, action: "block", ruleId: "942100" }),
  );
  const hostile = { url: '/a\u001b[2J\r\nb,"c"', ua: "=1+1", country: "NL", action: "log", ruleId: "920350" };
  const open = Array.from({ length: 10 }, (_, n) =>
    makeEvent({ logId: `new${n}`, occurredAt: DAY_START + DAY_MS + n * 60_000, ...hostile }),
  );
  await world.store([...old, ...open]);
  await archiveDay(world.database, folder, DAY);
  environment = { DATABASE_URL: world.database.url, LONGWATCH_ARCHIVE_DIR: folder.folder };
});

afterAll(() => folder.close());

/** The lines that were drawn over each other, in order. */
const readDrawn = (text: string) => text.split("\r").map((line) => line.replaceAll("\u001b[K", ""));

const search = (args: readonly string[], terminal: Partial<Terminal> = {}) =>
  runStoreCommand(searchCommand, environment, ["--zone", "101", ...args], { now: NOW, ...terminal });
const exportTo = (args: readonly string[], terminal: Partial<Terminal> = {}) =>
  runStoreCommand(
    exportCommand,
    environment,
    ["--zone", "101", ...(args.includes("--from") ? [] : ["--from", "-6d"]), ...args],
    { now: NOW, ...terminal },
  );

/** Times from here on are in Postgres alone, so the command starts no DuckDB. */
const IN_POSTGRES = ["--from", "2026-11-16"];
let whole: Promise<Ran> | undefined;
/** The export of all events, which several tests compare something with. */
const exportAll = () => (whole ??= exportTo([]));

const exportDays = (args: readonly string[], given = environment, terminal: Partial<Terminal> = {}) =>
  runStoreCommand(exportCommand, given, ["--zone", "101", "--format", "parquet", ...args], {
    now: NOW,
    ...terminal,
  });

test("rows come from the archive and from Postgres, newest first, and a payload cannot act on the terminal", async () => {
  const { code, out, err } = await search(["--from", "-6d", "--limit", "12"], {
    isTTY: true,
    hasColors: false,
  });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const lines = out.trimEnd().split("\n");
  expect(lines[0]).toBe("2026-11-16 UTC");
  expect(lines[1]).toMatch(/^00:09:00\.000 101 log +920350 .*\/a\\u001b\[2J\\u000d/);
  expect(lines[11]).toBe("2026-11-15 UTC");
  expect(lines[12]).toMatch(/^00:29:00\.000 101 block +942100$/);
  expect(lines.at(-1)).toBe("1 to 12 of 40 events.");
  expect(out).not.toContain("\u001b");
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
});

test("groups are a table with a sparkline that fits 80 columns, in colour only on a terminal that has colours", async () => {
  const args = [
    "--from",
    "2026-11-15",
    "--to",
    "2026-11-17",
    "--group-by",
    "ruleId,country",
    "--buckets",
    "48",
  ];
  const plain = await search(args);
  expect(plain).toMatchObject({ code: 0, err: "" });
  expect(plain.out).toMatch(
    /^COUNT +BLOCKED +TREND +LAST SEEN +RULE ID +COUNTRY\n30 +30 +█▁+ +2026-11-15 00:29 +942100/,
  );
  expect(plain.out).toMatch(/\n10 +- +▁+█▁+ +2026-11-16 00:09 +920350 +NL\n1 to 2 of 2 groups\.\n$/);
  expect(Math.max(...plain.out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  const coloured = await search([...args, "--page-size", "1"], { isTTY: true });
  expect(coloured.out).toContain("\u001b[31m30\u001b[");
  expect(coloured.out).toContain("1 to 1 of 2 groups. --page 1 shows the next page");
  expect((await search([...IN_POSTGRES, "--page", "9"])).out).toBe(
    "Page 9 is behind the last page: 10 events match.\n",
  );
});

test("--json has the members of the platform's answer with each event's record, and --page-all joins the pages", async () => {
  const one = JSON.parse((await search([...IN_POSTGRES, "--json", "--page-size", "3"])).out) as Record<
    string,
    unknown
  >;
  expect(one).toMatchObject({ groups: [], total: 10, totalPages: 4, page: 0, errorResponse: null });
  expect((one["rows"] as unknown[])[0]).toMatchObject({
    logId: "new9",
    fields: { ruleId: "920350", country: "NL" },
  });
  const all = JSON.parse(
    (await search(["--from", "-6d", "--json", "--page-all", "--page-size", "7"])).out,
  ) as {
    rows: { logId: string }[];
    total: number;
  };
  expect(all.total).toBe(40);
  expect(new Set(all.rows.map(({ logId }) => logId)).size).toBe(40);
  const groups = JSON.parse((await search([...IN_POSTGRES, "--json", "--group-by", "action"])).out) as object;
  expect(groups).toMatchObject({
    rows: [],
    total: 1,
    groups: [{ key: { action: "log" }, count: 10 }],
  });
});

test("--csv of rows equals the export, cell by cell, and groups have a line each", async () => {
  const rows = await search(["--from", "-6d", "--csv", "--page-all"]);
  const exported = await exportAll();
  expect(exported).toMatchObject({ code: 0, err: "" });
  expect(rows.out).toBe(exported.out);
  expect(rows.out).toContain(`"/a\\u001b[2J\r\nb,""c"""`);
  expect(rows.out).toContain(",'=1+1,");
  const groups = await search([
    ...IN_POSTGRES,
    "--csv",
    "--group-by",
    "country",
    "--filter",
    "country:eq:NL",
    "--buckets",
    "2",
  ]);
  expect(groups.out.split("\r\n").slice(0, 2)).toEqual([
    "country,count,firstSeen,lastSeen,context.country,context.asn,context.blocked,context.challenged,context.logged,context.features,context.ruleIds,sparkline",
    `NL,10,${DAY_START + DAY_MS},${DAY_START + DAY_MS + 540_000},NL,,0,0,10,,920350,10 0`,
  ]);
});

test("a service elsewhere gives what the database gives, in every form, and refuses what a key may not see", async () => {
  const { database } = world;
  const api = { clock: () => NOW, service: { ...SERVICE, zoneIds: [101] } };
  const { url } = await startArchive(database.url, {}, api, { files: folder.files });
  const ask = async (args: readonly string[], more: Parameters<typeof makeKey>[2] = {}) => {
    const { key } = await makeKey(database, "reader", more);
    const given = { LONGWATCH_URL: url, LONGWATCH_KEY: key };
    return runStoreCommand(searchCommand, given, ["--zone", "101", ...args], { now: NOW });
  };
  const all = ["--from", "-6d"];
  for (const [from, ...args] of [
    [all, "--limit", "35"],
    [all, "--format", "raw", "--limit", "12"],
    [IN_POSTGRES, "--page", "1", "--page-size", "7"],
    [IN_POSTGRES, "--filter", "path:not-contains:/nothing", "--csv", "--page-all"],
    [IN_POSTGRES, "--filter", "rule:in:920350,942100", "--json"],
    [IN_POSTGRES, "--group-by", "rule", "--buckets", "24"],
    [IN_POSTGRES, "--group-by", "rule,action", "--json"],
    [IN_POSTGRES, "--group-by", "agent", "--csv"],
    [IN_POSTGRES, "--format", "event", "--limit", "3"],
    [IN_POSTGRES, "--format", "ocsf", "--page-all"],
    [IN_POSTGRES, "--query", "nowhere"],
  ] as const) {
    const here = await search([...from, ...args]);
    expect(here).toMatchObject({ code: 0, err: "" });
    expect(await ask([...from, ...args])).toEqual(here);
  }
  expect(await ask(["--from", "-6d"], { zoneIds: [102] })).toMatchObject({ code: 1, out: "" });
});

async function openElsewhere(more: Parameters<typeof makeKey>[2] = {}, role: Role = "exporter") {
  const { database } = world;
  const api = { clock: () => NOW, service: { ...SERVICE, zoneIds: [101] } };
  const { url } = await startArchive(database.url, {}, api, { files: folder.files });
  const { key } = await makeKey(database, role, more);
  const exportAt = (address: string, args: readonly string[], terminal: Partial<Terminal> = {}) => {
    const given = { LONGWATCH_URL: address, LONGWATCH_KEY: key };
    const all = ["--zone", "101", ...(args.includes("--from") ? [] : ["--from", "-6d"]), ...args];
    return runStoreCommand(exportCommand, given, all, { now: NOW, ...terminal });
  };
  return { url, exportAt };
}

test("an export of a service elsewhere is that of the database, byte by byte, and is entered with the name of the key", async () => {
  const { url, exportAt } = await openElsewhere({ name: "carol" });
  expect(await exportAt(url, [])).toEqual(await exportAll());
  for (const args of [
    [...IN_POSTGRES, "--json"],
    [...IN_POSTGRES, "--format", "ocsf"],
    [...IN_POSTGRES, "--format", "csv", "--filter", "path:not-contains:/nothing"],
    [...IN_POSTGRES, "--json", "--query", "nowhere"],
  ]) {
    const here = await exportTo(args);
    expect(here).toMatchObject({ code: 0, err: "" });
    expect(await exportAt(url, args)).toEqual(here);
  }
  const gz = path.join(out, "elsewhere.csv.gz");
  const saved = await exportAt(url, ["--out", gz], { isErrTTY: true });
  expect(saved).toMatchObject({ code: 0, out: "" });
  const wrote = expect.stringMatching(/^wrote .*elsewhere\.csv\.gz: 40 events, [\d.]+ kB before/) as string;
  expect(readDrawn(saved.err)).toContainEqual(wrote);
  expect(gunzipSync(readFileSync(gz)).toString()).toBe((await exportAll()).out);
  const wanted = { since: undefined, action: "events.exported", limit: 100 };
  const audit = await listAudit(world.database.db, wanted);
  expect(audit.filter(({ actor }) => actor.includes("carol"))).toHaveLength(6);
});

test("an export of a service elsewhere says what it cannot do there", async () => {
  const { url, exportAt } = await openElsewhere();
  const refused = await exportAt(url, [
    "--format",
    "parquet",
    "--out",
    path.join(days, "there"),
    "--by",
    "eve",
  ]);
  expect(refused).toMatchObject({ code: 2, out: "" });
  for (const part of [
    '--format "parquet" must be csv, ndjson or ocsf for a service elsewhere: files are copied on its machine',
    "--by cannot be used with another service's address",
  ])
    expect(refused.err).toContain(part);
  const other = await openElsewhere({ zoneIds: [102] });
  expect(await other.exportAt(other.url, [])).toMatchObject({ code: 1, out: "" });
  const reader = await openElsewhere({}, "reader");
  expect(await reader.exportAt(reader.url, [])).toMatchObject({
    code: 1,
    err: "longwatch export: This key lacks the scope export. Use a key with the role exporter or higher.\n",
  });
});

test("an export of a service elsewhere that ends too early is a failure, and leaves no file", async () => {
  const { url, exportAt } = await openElsewhere();
  const torn = await startProxy(url, { cutAfter: 300 });
  const target = path.join(out, "torn.csv");
  const ran = await exportAt(torn, ["--out", target]);
  expect(ran).toMatchObject({ code: 1, out: "" });
  expect(ran.err).toContain("ended its answer before the end");
  expect(readdirSync(out).filter((name) => name.includes("torn"))).toEqual([]);
});

test.each<[string, number, Record<string, string>, string | Buffer]>([
  ["is empty", 200, { "content-type": "text/csv" }, ""],
  ["has no content", 204, {}, ""],
  ["is a sign-in page", 200, { "content-type": "text/csv" }, "<html>sign in</html>"],
  ["is of another type", 200, { "content-type": "text/csvx" }, EXPORT_HEADER],
  ["ends within a row", 200, { "content-type": "text/csv" }, `${EXPORT_HEADER}1,2`],
  [
    "ends within a compressed row",
    200,
    { "content-type": "text/csv", "content-encoding": "zstd" },
    zstdCompressSync(`${EXPORT_HEADER}${"1,2,3\r\n".repeat(2_000)}`).subarray(0, 60),
  ],
])(
  "an export of a service elsewhere whose answer %s is a failure, and leaves no file",
  async (_, status, headers, body) => {
    const broken = await startProxy("http://127.0.0.1:1", {
      answer: (response) => (response.writeHead(status, headers).end(body), true),
    });
    const given = { LONGWATCH_URL: broken, LONGWATCH_KEY: "key" };
    const args = ["--zone", "101", "--from", "-6d", "--out", path.join(out, "broken.csv")];
    const ran = await runStoreCommand(exportCommand, given, args, { now: NOW });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(readdirSync(out).filter((name) => name.includes("broken"))).toEqual([]);
  },
);

test("--out - writes the export to the standard output, and --buckets 24 draws 24 columns", async () => {
  expect(await exportTo([...IN_POSTGRES, "--out", "-"])).toEqual(await exportTo(IN_POSTGRES));
  const { out: table } = await search([...IN_POSTGRES, "--group-by", "ruleId", "--buckets", "24"]);
  expect(/ ([▁-█]+) /.exec(table)?.[1]).toHaveLength(24);
});

test("an export to a file is compressed by its name, complete, private, and entered into the audit trail", async () => {
  const plain = (await exportTo([...IN_POSTGRES, "--json"])).out;
  expect(
    plain
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown),
  ).toHaveLength(10);
  const zst = path.join(out, "e.ndjson.zst");
  const ran = await exportTo([...IN_POSTGRES, "--out", zst, "--by", "alice", "--query", "a"]);
  expect(ran).toMatchObject({ code: 0, out: "" });
  expect(ran.err).toMatch(/^wrote .*e\.ndjson\.zst: 10 events, [\d.]+ kB before compression\n$/);
  expect(zstdDecompressSync(readFileSync(zst)).toString()).toBe(
    (await exportTo([...IN_POSTGRES, "--json", "--query", "a"])).out,
  );
  const gz = path.join(out, "e.csv.gz");
  expect(await exportTo(["--out", gz])).toMatchObject({ code: 0 });
  expect(gunzipSync(readFileSync(gz)).toString()).toBe((await exportAll()).out);
  expect(
    readdirSync(out)
      .filter((name) => name.startsWith("e."))
      .sort(),
  ).toEqual(["e.csv.gz", "e.ndjson.zst"]);
  const audit = await listAudit(world.database.db, {
    since: undefined,
    action: "events.exported",
    limit: 100,
  });
  expect(audit.find(({ actor }) => actor === "alice")).toMatchObject({
    subject: "zone 101",
    details: { filteredBy: ["ip", "ruleId", "url", "ua", "message"], isMasked: false },
  });
  const again = await exportTo(["--out", gz]);
  expect(again).toMatchObject({ code: 2 });
  expect(again.err).toContain("must be a new file");
});

test("the progress of an export with a filter counts the written events", async () => {
  const args = ["--query", "9", "--out", path.join(out, "counted.csv")];
  const { err } = await exportTo(args, { isErrTTY: true });
  const lines = readDrawn(err);
  // The ten events of Postgres come first, the archive day behind them. Of the rest of the span nothing is kept.
  expect(lines.some((line) => / \d+ % {2}10 events {2}back to 2026-11-16 00:00$/.test(line))).toBe(true);
  expect(lines.some((line) => / 99 % {2}40 events {2}back to 2026-11-14 00:00$/.test(line))).toBe(true);
  expect(lines.at(-2)).toMatch(/^wrote .*: 40 events, [\d.]+ kB\n$/);
  expect(Math.max(...lines.slice(0, -2).map((line) => line.length))).toBeLessThan(80);
});

test("the progress of an export without a filter knows the total", async () => {
  const plan = {
    from: DAY_START + 600_000,
    to: NOW,
    clauses: [],
    groupBy: [],
    methodClauses: [],
  } as unknown as SearchPlan;
  const drawn: string[] = [];
  const counted = await withSearch({}, parseConfig(environment), async (deps, _, signal) => {
    const line = { update: (text: string) => drawn.push(text) };
    let elapsed = 0;
    const clock = () => (elapsed += 1_000);
    const progress = createExportProgress({ plan, form: "json", line, clock });
    await progress.findTotal(() => countUnfiltered(deps, 101, plan, signal));
    const { onReached } = progress;
    const lines = exportEvents((_, work) => work(deps), 101, plan, { form: "json", signal, onReached });
    for await (const chunk of progress.watch(lines)) expect(chunk.length).toBeGreaterThan(0);
    return progress.events();
  });
  expect(counted).toBe(30);
  expect(drawn[0]).toMatch(/ 0 % {2}0 of 30 events {2}0\/s/);
  expect(drawn.some((text) => / 33 % {2}10 of 30 events {2}\d+\/s {2}\d+ s left/.test(text))).toBe(true);
  expect(drawn.at(-1)).toMatch(/ 99 % {2}30 of 30 events/);
});

test("--format parquet copies the files of whole archive days into a new folder that archive verify --offline accepts, and counts events and files", async () => {
  const target = path.join(days, "days");
  const args = ["--from", DAY, "--to", "2026-11-16", "--out", target, "--by", "bob"];
  const ran = await exportDays(args, environment, { isErrTTY: true });
  expect(ran).toMatchObject({ code: 0, out: "" });
  const shown = readDrawn(ran.err);
  expect(shown.some((line) => / 0 % {2}0 of 30 events, 0 of 2 files$/.test(line))).toBe(true);
  expect(shown.some((line) => / \d+ % {2}30 of 30 events, 1 of 2 files$/.test(line))).toBe(true);
  expect(shown.some((line) => / 99 % {2}30 of 30 events, 2 of 2 files$/.test(line))).toBe(true);
  expect(shown.at(-1)).toMatch(/^wrote .*days: 1 day, 30 events, 2 files, [\d.]+ kB\n$/);

  const copied = listFiles(target);
  expect(copied.map((name) => name.replace(/[0-9a-f]{16}/, "HASH")).sort()).toEqual([
    `events/zone=101/day=${DAY}/HASH.parquet`,
    `events/zone=101/day=${DAY}/_statement.json`,
    `records/zone=101/day=${DAY}/HASH.parquet`,
  ]);
  for (const name of copied)
    expect(readFileSync(path.join(target, name))).toEqual(readFileSync(path.join(folder.folder, name)));
  const verified = await runStoreCommand(archiveCommand, environment, ["verify", "--offline", target], {
    now: NOW,
  });
  expect(verified.out).toMatch(/^1 day, 2 files, 30 events, .*nothing differs\n$/);
  const audit = await listAudit(world.database.db, {
    since: undefined,
    action: "events.exported",
    limit: 100,
  });
  expect(audit.find(({ actor }) => actor === "bob")).toMatchObject({ subject: "zone 101" });
});

test.each([
  [
    "a span that cuts a day",
    ["--from", "2026-11-15T01:00:00Z", "--to", "2026-11-16"],
    /--from .* must be the start of a UTC day.* for other spans write \.csv/,
  ],
  [
    "a filter",
    ["--from", DAY, "--to", "2026-11-16", "--query", "a"],
    /--out .* must be a new file that ends in \.parquet beside filters/,
  ],
  [
    "a file as target",
    ["--from", DAY, "--to", "2026-11-16", "--out", import.meta.filename],
    /--out .* must be a folder that does not exist yet/,
  ],
  [
    "days that are neither archived nor in Postgres",
    ["--from", DAY, "--to", "2026-11-19"],
    /2 days of 2026-11-17 to 2026-11-18 are neither in the archive nor in Postgres: choose --from 2026-11-15 --to 2026-11-17, or choose days that are kept/,
  ],
  [
    "no kept day at all",
    ["--from", "2026-11-17", "--to", "2026-11-18"],
    /2026-11-17 is neither in the archive nor in Postgres: choose days that are kept/,
  ],
])("--format parquet refuses %s, says what to do, and writes nothing", async (_, args, said) => {
  const target = path.join(days, "refused");
  const ran = await exportDays([...(args.includes("--out") ? [] : ["--out", target]), ...args]);
  expect(ran.err).toMatch(said);
  expect(ran).toMatchObject({ code: 2, out: "" });
  expect(readdirSync(days).filter((name) => name.startsWith("refused"))).toEqual([]);
});

test("--format parquet leaves nothing behind if a file does not have its hash", async () => {
  const copy = path.join(makeTemporaryFolder("damaged"), "archive");
  cpSync(folder.folder, copy, { recursive: true });
  const name = listFiles(copy).find((file) => file.startsWith("records/")) ?? "";
  const bytes = readFileSync(path.join(copy, name));
  bytes[9] = (bytes[9] ?? 0) ^ 1;
  writeFileSync(path.join(copy, name), bytes);
  const args = ["--from", DAY, "--to", "2026-11-16", "--out", path.join(days, "torn")];
  const ran = await exportDays(args, { ...environment, LONGWATCH_ARCHIVE_DIR: copy });
  expect(ran.err).toMatch(/the archive file records\/\S+ of 2026-11-15 has another SHA-256/);
  expect(ran.code).toBe(1);
  expect(readdirSync(days).filter((name) => name.startsWith("torn"))).toEqual([]);
});

test("a damaged archive names the file and the folder, and leaves no export behind", async () => {
  const empty = path.join(makeTemporaryFolder("other"), "archive");
  mkdirSync(empty);
  const target = path.join(out, "broken.csv");
  const elsewhere = { ...environment, LONGWATCH_ARCHIVE_DIR: empty };
  const args = ["--zone", "101", "--from", "-6d"];
  const found = await runStoreCommand(searchCommand, elsewhere, [...args, "--group-by", "url"], { now: NOW });
  expect(found).toMatchObject({ code: 1, out: "" });
  expect(found.err).toMatch(
    /^longwatch search: the archive file \S+ of 2026-11-15 is missing\. The folder of the archive is .*LONGWATCH_ARCHIVE_DIR/,
  );
  const exported = await runStoreCommand(exportCommand, elsewhere, [...args, "--out", target], { now: NOW });
  expect(exported.code).toBe(1);
  expect(existsSync(target)).toBe(false);
  expect(readdirSync(out).filter((name) => name.includes("tmp"))).toEqual([]);
});

test("all mistakes are reported together, and a window outside the retention or an unknown zone is one", async () => {
  const mistaken = await search([
    "--from",
    "x",
    "--filter",
    "nonsense",
    "--limit",
    "0",
    "--csv",
    "--json",
    "--zonee",
    "1",
  ]);
  expect(mistaken).toMatchObject({ code: 2, out: "" });
  for (const part of [
    '--from "x"',
    '--filter "nonsense"',
    '--limit "0"',
    "--csv, --json and --format exclude each other",
    "did you mean --zone?",
  ])
    expect(mistaken.err).toContain(part);
  expect((await search(["--from", "-900d", "--to", "-800d"])).err).toContain("be within the last 400 days");
  const unknown = await runStoreCommand(searchCommand, environment, ["--zone", "9", "--from", "-1d"], {
    now: NOW,
  });
  expect(unknown).toMatchObject({ code: 2 });
  expect(unknown.err).toContain(
    '--zone "9" must be a shield zone that is configured or has stored data (101)',
  );
  writeFileSync(
    path.join(bodies, "body.json"),
    JSON.stringify({ from: DAY_START + DAY_MS, to: NOW, groupBy: ["action"] }),
  );
  const body = await search(["--body", path.join(bodies, "body.json"), "--csv"]);
  expect(body.out.split("\r\n")[1]).toMatch(/^log,10,/);
});

test("fields have one set of names, groups are headed by the name that was asked for, and not- excludes", async () => {
  const args = ["--from", "-6d", "--group-by", "rule,path", "--csv"];
  const rest = await search([
    ...args,
    "--filter",
    "path:not-contains:/A",
    "--filter",
    "action:not-eq:logged",
  ]);
  expect(rest.out.split("\r\n")).toEqual([
    expect.stringMatching(/^rule,path,count,/),
    expect.stringMatching(/^942100,,30,/),
    "",
  ]);
  const old = await search([...IN_POSTGRES, "--group-by", "ruleId", "--csv", "--filter", "ip:eq:"]);
  expect(old.out).toMatch(/^ruleId,count,/);
  const logged = await search([...IN_POSTGRES, "--filter", "action:eq:logged", "--limit", "1"]);
  expect(logged.out).toContain("1 to 1 of 10 events.");
});

test("a value that no event can have is a mistake that names the option, the value and the rule", async () => {
  const { code, out, err } = await search([
    "--from",
    "-6d",
    "--group-by",
    "colour",
    "--filter",
    "action:eq:stopped",
    "--filter",
    "path:eq:/a?b=1",
    "--filter",
    "url:not-regex:x",
  ]);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  for (const part of [
    'The value "stopped" is not valid: --filter for action must be block (or blocked)',
    'The value "/a?b=1" is not valid: --filter for path must be a path such as /login',
    'The value "regex" is not valid: --filter must be one of eq, in',
    'The value "colour" is not valid: --group-by must be one of rule, action, address',
  ])
    expect(err).toContain(part);
  expect(err).not.toContain("--from");
});
