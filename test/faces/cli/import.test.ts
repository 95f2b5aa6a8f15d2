import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readArchivedDays } from "#db/archive/archived-days.ts";
import { listDaysToArchive } from "#db/archive/days-to-archive.ts";
import { listQuarantined } from "#db/ingest/quarantine.ts";
import { listAudit } from "#db/people/audit-trail.ts";
import { readGapBatches, readUndecided } from "#db/proof/coverage-report.ts";
import { enterHours } from "#db/proof/covered-hours.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { exportCommand } from "#faces/cli/export/export.ts";
import { importCommand } from "#faces/cli/import.ts";
import { searchCommand } from "#faces/cli/search/search.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { UNPREVENTABLE } from "#proof/rules/judge-hour.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../../archive/archive-folder.ts";
import { openArchiveWorld } from "../../archive/files/archive-world.ts";
import { shareDatabase } from "../../db/migrated-database.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { environment as privacyEnvironment, rollUp, runCommand } from "../../people/erasure-world.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { runStoreCommand, type Terminal } from "./run-store-command.ts";

/** Both days have left the platform's 72 hours. The instance A has archived the first one. */
const DAY = "2026-11-05";
const START = Date.parse(DAY);
const NOW = START + 15 * DAY_MS + 30 * 60_000;
const HOSTILE = {
  url: '/a\u001b[2J\r\nb,"c"\\u001b',
  ua: "=1+1",
  country: "NL",
  action: "log",
  ip: "203.0.113.7",
};
const a = await openArchiveWorld();
const b = await shareDatabase();
const files = makeTemporaryFolder("imports");
let [folderA, folderB]: ArchiveFolder[] = [];
let [environmentA, environmentB]: Record<string, string>[] = [];

beforeAll(async () => {
  [folderA, folderB] = await Promise.all([openFolder(), openFolder()]);
  const old = Array.from({ length: 30 }, (_, n) =>
    makeEvent({ logId: `+old${n}`, occurredAt: START + n * 40 * 60_000, ...(n % 2 === 0 ? HOSTILE : {}) }),
  );
  const open = Array.from({ length: 10 }, (_, n) =>
    makeEvent({ logId: `new${n}`, occurredAt: START + DAY_MS + n * 60_000, ...HOSTILE, ruleId: "920350" }),
  );
  await a.store([...old, ...open]);
  await a.store([makeEvent({ logId: "other", occurredAt: START + 7 })], { zoneId: 102 });
  await archiveDay(a.database, folderA, DAY);
  environmentA = { DATABASE_URL: a.database.url, LONGWATCH_ARCHIVE_DIR: folderA.folder };
  environmentB = {
    ...privacyEnvironment(b),
    LONGWATCH_ARCHIVE_DIR: folderB.folder,
    EDGE_SHIELD_ZONES: "101,102",
  };
  for (const name of ["one.csv", "one.ndjson.zst", "one.parquet"]) await exportA("101", name);
  await exportA("all", "all.csv.gz");
  await exportA("all", "all.ndjson");
});
afterAll(() => Promise.all([folderA?.close(), folderB?.close()]));

const at = (name: string) => path.join(files, name);
const exportA = (zone: string, name: string) =>
  run(exportCommand, environmentA, ["--zone", zone, "--from", "-20d", "--out", at(name)]);
const run = (
  command: Parameters<typeof runStoreCommand>[0],
  given: Record<string, string> | undefined,
  args: readonly string[],
  terminal: Partial<Terminal> = {},
) => runStoreCommand(command, given ?? {}, args, { now: NOW, ...terminal });
const importB = (args: readonly string[], terminal: Partial<Terminal> = {}) =>
  run(importCommand, environmentB, args, terminal);

async function countsOf(name: string, ...args: string[]) {
  const ran = await importB([at(name), "--json", ...args]);
  const counts = JSON.parse(ran.out) as Record<
    "rows" | "stored" | "known" | "refused" | "unreadable",
    number
  >;
  const { notes } = JSON.parse(ran.out) as { notes: { line: number; reason: string }[] };
  return { code: ran.code, ...counts, notes };
}
const STORED = { code: 0, known: 0, refused: 0, unreadable: 0, notes: [] };

function write(name: string, lines: readonly (string | object)[]): string {
  writeFileSync(
    at(name),
    lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""),
  );
  return name;
}

/** The rows of searches, without records, which an export has not. */
async function searchAll(given: Record<string, string> | undefined, zone = "101"): Promise<string[]> {
  const asked = ["--zone", zone, "--from", "-20d", "--page-all", "--csv"];
  const more = [[], ["--group-by", "rule,action", "--query", "=1+1"]];
  const out: string[] = [];
  for (const args of more) out.push((await run(searchCommand, given, [...asked, ...args])).out);
  return out;
}

let ofA: Promise<string[]> | undefined;
const searchA = () => (ofA ??= searchAll(environmentA));

const stateOf = async () =>
  (await b.pool.query("select zone_id, log_id, occurred_at, ip, url from waf_events order by 1, 2"))
    .rows as unknown[];

test.each([
  ["one.csv", "101"],
  ["one.ndjson.zst", "101"],
  ["one.parquet", null],
])(
  "the events of %s are found in an empty instance as in that which exported them, and twice is once",
  async (name, zone) => {
    const args = zone === null ? [] : ["--zone", zone];
    expect(await countsOf(name, ...args)).toEqual({ ...STORED, rows: 40, stored: 40 });
    expect(await searchAll(environmentB)).toEqual(await searchA());
    const before = await stateOf();
    expect(await countsOf(name, ...args)).toEqual({ ...STORED, rows: 40, stored: 0, known: 40 });
    expect(await stateOf()).toEqual(before);
    expect(await listAudit(b.db, { limit: 9, action: "events.imported" } as never)).toHaveLength(2);
  },
);

test("a file of all zones needs no zone, a row of an unknown one is refused with the rule, and one without any is told of --zone", async () => {
  expect(await countsOf("all.csv.gz")).toEqual({ ...STORED, rows: 41, stored: 41 });
  expect(await countsOf("all.ndjson")).toEqual({ ...STORED, rows: 41, stored: 0, known: 41 });
  const foreign = [
    { logId: "x", timestamp: START, zone: 999 },
    { logId: "y", timestamp: START },
  ];
  const { code, notes } = await countsOf(write("foreign.ndjson", foreign));
  expect(code).toBe(1);
  expect(notes.map(({ line, reason }) => `${line} ${reason}`)).toEqual([
    "1 zone 999 must be a shield zone that is configured or has stored data (101, 102)",
    "2 the row names no zone; give --zone",
  ]);
  expect(await importB([at("one.csv"), "--zone", "7"])).toMatchObject({ code: 2, out: "" });
});

test("importing the export of the same database changes nothing, not even an archive day", async () => {
  const day = () => readArchivedDays(a.database.db, 101, { from: START, to: START + DAY_MS });
  const before = await day();
  const ran = await run(importCommand, environmentA, [at("one.csv"), "--zone", "101"]);
  expect(ran.out).toBe("40 rows: 0 stored, 40 stored before, 0 refused, 0 unreadable\n");
  expect(await day()).toEqual(before);
});

test("imported hours are imported, not proven and no loss; the watch begins where it would without them", async () => {
  await countsOf("one.csv", "--zone", "101");
  const coverage = await loadSubject("coverage");
  const shown = async () =>
    (await run(coverage, environmentB, ["--zone", "101", "--from", "2026-11-05", "--to", "2026-11-07"])).out;
  expect(await shown()).toMatch(/2026-11-05 {2}i{20}----\n2026-11-06 {2}i-{23}\n/);
  const range = { fromMs: NOW - (NOW % HOUR_MS) - 72 * HOUR_MS, toMs: NOW - (NOW % HOUR_MS) };
  expect(await enterHours(b.db, 101, range)).toBe(range.fromMs);
  const { rows } = await b.pool.query<{ hours: string; sealed: string; open: string }>(
    `select count(*) as hours, count(*) filter (where state = 'sealed') as sealed, count(*) filter (where state = 'open') as open
     from coverage_windows where zone_id = 101`,
  );
  expect(rows).toEqual([{ hours: String(15 * 24), sealed: "0", open: "72" }]);
  expect(await readGapBatches(b.db, [101], { sinceMs: 0, exceptReasons: UNPREVENTABLE })).toEqual([]);
  const [undecided] = await readUndecided(b.db, [101], NOW);
  expect(undecided?.oldest?.startsAt).toBe(range.fromMs + 2 * HOUR_MS);
  expect(await run(await loadSubject("gaps"), environmentB, ["--zone", "101"])).toMatchObject({ code: 0 });
});

test("imported days are archived, an import into an archive day completes the day, and trends and searches see both", async () => {
  const folder = folderB as ArchiveFolder;
  const first = write(
    "first.ndjson",
    readFileSync(at("all.ndjson"), "utf8").trimEnd().split("\n").slice(0, 25),
  );
  await countsOf(first);
  await rollUp(b);
  const due = (await listDaysToArchive(b.db, "2026-11-17", [101])).filter(({ zoneId }) => zoneId === 101);
  expect(due.slice(0, 2)).toEqual([
    { zoneId: 101, day: DAY, waitingFor: null },
    { zoneId: 101, day: "2026-11-06", waitingFor: null },
  ]);
  await archiveDay(b, folder, DAY);
  await b.pool.query("delete from rule_buckets where width = 60");
  expect(await countsOf("one.csv", "--zone", "101")).toEqual({ ...STORED, rows: 40, stored: 15, known: 25 });
  await rollUp(b);
  const asked = `show --zone 101 --width day --from ${DAY} --to 2026-11-06 --json`.split(" ");
  const trend = await run(await loadSubject("trends"), environmentB, asked);
  expect(JSON.parse(trend.out)).toMatchObject({ points: [{ total: 30, coverage: "unwatched" }] });
  await archiveDay(b, folder, DAY);
  expect(await searchAll(environmentB)).toEqual(await searchA());
});

test("an import that is stopped in the middle goes on, and ends as one that was not", async () => {
  const many = Array.from({ length: 12_000 }, (_, n) => ({
    logId: `m${n}`,
    timestamp: START + n * 1_000,
    ua: "u",
  }));
  const name = write("many.ndjson", many);
  const stop = new AbortController();
  const running = importB([at(name), "--zone", "101"], { interrupted: stop.signal });
  await expect
    .poll(async () => (await b.pool.query("select from waf_events limit 1")).rowCount, {
      interval: 5,
      timeout: 20_000,
    })
    .toBe(1);
  stop.abort(new Error("stopped"));
  expect((await running).code).toBe(1);
  const { known, stored } = await countsOf(name, "--zone", "101");
  expect([known + stored, known % 5_000, known > 0 && known < 12_000]).toEqual([12_000, 0, true]);
});

test("rows that are no events are counted, named and in the quarantine; proven hours, old and future events are refused", async () => {
  await b.pool.query(
    `insert into coverage_windows (zone_id, starts_at, state, sealed_at, evidence) values (101, $1, 'sealed', now(), '{}')`,
    [new Date(START)],
  );
  const long = `{"logId":"long","ua":"${"x".repeat(17_000_000)}"}`;
  const rows = [
    { logId: "good", timestamp: START + 2 * HOUR_MS },
    "\u0000\u0001 no JSON",
    '{"logId":"half',
    { timestamp: START },
    { logId: "late", timestamp: "yesterday" },
    long,
    { logId: "proven", timestamp: START },
    { logId: "ancient", timestamp: START - 500 * DAY_MS },
    { logId: "future", timestamp: NOW + HOUR_MS },
    { logId: "good", timestamp: START + 2 * HOUR_MS },
  ];
  const { notes, ...counts } = await countsOf(write("bad.ndjson", rows), "--zone", "101");
  expect(counts).toEqual({ code: 1, rows: 10, stored: 1, known: 1, refused: 3, unreadable: 5 });
  expect(notes.map(({ line, reason }) => `${line} ${reason}`)).toEqual([
    "2 unreadable: is no JSON object",
    "3 unreadable: is no JSON object",
    "4 unreadable: logId: invalid_union",
    "5 unreadable: timestamp: invalid_type",
    "6 unreadable: longer than 16 MB",
    "8 older than the 400 days for which events are kept",
    "9 its time is in the future",
    "7 the hour of 2026-11-05 is proven complete without this event",
  ]);
  const kept = await listQuarantined(b.db, { zoneIds: [101], before: null, limit: 9 });
  expect(kept.map(({ bytes, reason }) => [Math.min(bytes, 99_999), reason]).at(0)).toEqual([
    65_536,
    "unreadable: longer than 16 MB; imported, line 6",
  ]);
  expect(kept).toHaveLength(5);
});

test.each([
  [
    "no-header.csv",
    "1,2,3\n",
    "is not an export: its first line must name the columns logId and timestamp or time",
  ],
  ["open.csv", 'logId,timestamp\na,1\n"open', "the CSV file ends in the middle of a record"],
  ["binary.csv.gz", "\u001f\u008b nothing", "cannot be unpacked: "],
  ["bomb.ndjson.gz", gzipSync(Buffer.alloc(110_000_000, " ")), "unpacks to more than 300 times its "],
  ["broken.parquet", "PAR1 nothing", ""],
])("%s ends the import with what is wrong, and the file", async (name, content, rule) => {
  writeFileSync(at(name), content);
  const { code, err } = await importB([at(name), "--zone", "101"]);
  expect(code).toBe(1);
  expect(err).toContain(`${name} ${rule}`);
});

test("an erased address stays erased, and an old one becomes a pseudonym, whatever the file says", async () => {
  const own = { ...environmentB, LONGWATCH_IP_DAYS: "10" };
  const put = (name: string) => run(importCommand, own, [at(name), "--zone", "101"]);
  const young = NOW - 5 * DAY_MS;
  const rows = [
    { logId: "erased", timestamp: young, address: "203.0.113.7", url: "/u?203.0.113.7" },
    { logId: "young", timestamp: young, address: "198.51.100.9", request_id: "r1" },
    { logId: "old", timestamp: START, address: "198.51.100.9", request_id: "r2" },
    { logId: "anon", timestamp: START, address: "anon-aaaaaaaaaaaaa-aaaaaaaaaaaaa" },
    '{"nothing": "203.0.113.7"',
  ];
  await put(write("key.ndjson", [{ logId: "first", timestamp: START }]));
  expect(
    await runCommand(b, "erase --ip 203.0.113.7 --yes --until 2026-11-17T00:00:00Z", { now: NOW }),
  ).toMatchObject({ code: 0 });
  await put(write("people.ndjson", rows));
  const { rows: kept } = await b.pool.query(
    "select log_id as id, ip, url, request_id as request from waf_events where log_id <> 'first' order by 1",
  );
  expect(kept).toEqual([
    { id: "anon", ip: "anon-aaaaaaaaaaaaa-aaaaaaaaaaaaa", url: null, request: null },
    { id: "erased", ip: "erased", url: "", request: "" },
    {
      id: "old",
      ip: expect.stringMatching(/^anon-[a-z2-7]{13}-[a-z2-7]{13}$/) as string,
      url: null,
      request: "",
    },
    { id: "young", ip: "198.51.100.9", url: null, request: "r1" },
  ]);
  // An erasure of long ago counts for an entry of which no time is known.
  const until = "--yes --until 2026-11-06T00:00:00Z";
  expect(await runCommand(b, `erase --ip 192.0.2.50 ${until}`, { now: NOW })).toMatchObject({ code: 0 });
  await put(write("aside.ndjson", ['{"nothing": "192.0.2.50"']));
  const { rows: aside } = await b.pool.query<{ raw: Buffer }>("select raw from quarantined_entries");
  expect(aside.map(({ raw }) => String(raw)).join()).not.toMatch(/203\.0\.113\.7|192\.0\.2\.50/);
});

test("log lines and answers of the platform become events with their records", async () => {
  const log = JSON.stringify({
    Url: "https://shop.example/a",
    RemoteIp: "203.0.113.*",
    Message: "m",
    Headers: {},
  });
  const entry = { logId: "line", timestamp: START, log, labels: { ruleId: "942100", status: "Blocked" } };
  const row = {
    logId: "row",
    timestamp: START + 1,
    log: JSON.parse(log) as object,
    fields: { rule: "1", address: "::1" },
  };
  const page = { rows: [row], groups: null, total: 1, totalPages: 1, page: 0 };
  expect(await countsOf(write("platform.ndjson", [entry, page]), "--zone", "101")).toEqual({
    ...STORED,
    rows: 2,
    stored: 2,
  });
  const { out } = await run(searchCommand, environmentB, ["--zone", "101", "--from", "-20d", "--json"]);
  const { rows } = JSON.parse(out) as { rows: { logId: string; log: object; fields: object }[] };
  expect(rows).toMatchObject([
    { logId: "row", log: { Message: "m" }, fields: { ruleId: "1", ip: "::1" } },
    { logId: "line", log: { Url: "https://shop.example/a" }, fields: { ruleId: "942100", action: "block" } },
  ]);
});
