import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ruleBuckets } from "#db/schema/rules.ts";
import { backtestCommand } from "#faces/cli/backtest/backtest.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const START = Date.UTC(2026, 10, 10) / 1_000;
const ATTACK = START + 9 * 86_400;
const ATTACK_ISO = new Date(ATTACK * 1_000).toISOString();

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "backtest-"));
});

afterEach(() => rm(folder, { recursive: true }));

function run(args: readonly string[], environment: Record<string, string> = {}) {
  return runStoreCommand(backtestCommand, environment, args, { now: NOW });
}

async function replay(text: string, ...args: string[]) {
  const file = path.join(folder, "counts.csv");
  await writeFile(file, text);
  return run(["--counts", file, ...args]);
}

/** Ten days with an event in every third minute, and an attack of five minutes on the last. */
const traffic = Array.from({ length: 10 * 480 }, (_, i) => ({ second: START + i * 180, count: 1 })).map(
  (row) => (row.second >= ATTACK && row.second < ATTACK + 900 ? { ...row, count: 80 } : row),
);
const rows = (series: string) =>
  traffic.map(({ second, count }) => `${series},${second},${count}\n`).join("");

test("every minute in alert is written, and the summary counts them", async () => {
  const out = path.join(folder, "alerts.csv");
  const quoted = '"a ""b"", c"';
  const { code, out: summary } = await replay(
    `series,timestamp,count\n${rows("plain")}${rows(quoted)}`,
    "--alerts",
    out,
  );
  expect(code).toBe(0);
  const lines = (await readFile(out, "utf8")).split("\n");
  expect(lines.slice(0, 3)).toEqual(["series,timestamp", `plain,${ATTACK}`, `plain,${ATTACK + 60}`]);
  expect(lines).toContain(`${quoted},${ATTACK}`);
  const minutes = lines.length - 2;
  expect(summary).toContain("2026-11-10 00:00 to 2026-11-19 23:58 UTC");
  expect(summary).toMatch(/series +2, 20 series-days/);
  expect(summary).toMatch(/alerts +2 at z 3\.5, 0\.1000 per series-day/);
  expect(summary).toContain(`in alert  ${minutes} minutes`);
  expect(await readdir(folder)).toEqual(["alerts.csv", "counts.csv"]);
});

test("columns may stand in any order, with others, a byte order mark and Windows line ends", async () => {
  const lines = traffic.map(({ second, count }) => `${count}.0,x,${second}.0,r\r\n`).join("");
  const { code, out } = await replay(`\uFEFFcount,note,timestamp,series\r\n${lines}`, "--json");
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    series: 1,
    rows: 4_800,
    alerts: [{ series: "r", from: ATTACK_ISO }],
  });
});

test("start and end are seconds as in the file or times as people write them", async () => {
  const text = `series,timestamp,count\n${rows("r")}`;
  for (const [start, end, alerts] of [
    [String(ATTACK - 600), "2026-11-19T06:00", 1],
    ["2026-11-19T06:00", String(ATTACK + 86_400), 0],
    [String(START), "2026-11-18", 0],
  ] as const) {
    const { out } = await replay(text, "--start", start, "--end", end, "--json");
    expect(JSON.parse(out).alerts).toHaveLength(alerts);
  }
});

test("a higher z alerts less", async () => {
  const text = `series,timestamp,count\n${rows("r").replaceAll(",80\n", ",15\n")}`;
  const alerts = async (z: string) => JSON.parse((await replay(text, "--z", z, "--json")).out).alerts;
  expect(await alerts("3.5")).toHaveLength(1);
  expect(await alerts("20")).toEqual([]);
});

test("bad input is named by line, column and rule, and nothing is written", async () => {
  const out = path.join(folder, "alerts.csv");
  const bad = [
    "a,61,1",
    "a,60",
    "a,120,-1",
    ",180,1",
    "a,240,1e3",
    "a,1700006400000,1",
    "a,600,2",
    "\u001b,600,x",
    "a,600,2",
  ];
  const {
    code,
    err,
    out: printed,
  } = await replay(`series,timestamp,count\n${bad.join("\n")}`, "--alerts", out);
  expect(code).toBe(2);
  expect(printed).toBe("");
  for (const named of [
    'line 2, column timestamp: "61" must be the epoch second at which a minute starts',
    "line 3, column count: is missing; it must be a whole number",
    'line 4, column count: "-1" must be a whole number',
    'line 5, column series: "" must be a name',
    'line 6, column count: "1e3"',
    'line 7, column timestamp: "1700006400000"',
    'line 9, column count: "x"',
    'line 10, column timestamp: "600" must be later than 600',
  ])
    expect(err).toContain(named);
  expect(await readdir(folder)).toEqual(["counts.csv"]);
});

test("rows that are out of order are sorted, and a minute that then stands twice is named", async () => {
  const lines = `${rows("a")}${rows("b")}`.trimEnd().split("\n");
  const sorted = await replay(`series,timestamp,count\n${lines.join("\n")}`, "--json");
  expect(JSON.parse(sorted.out).alerts).toHaveLength(2);
  const mixed = lines.toReversed().join("\n");
  expect(JSON.parse((await replay(`series,timestamp,count\n${mixed}`, "--json")).out)).toEqual({
    ...JSON.parse(sorted.out),
    alerts: JSON.parse(sorted.out).alerts.toReversed(),
  });
  const twice = await replay("series,timestamp,count\na,600,1\na,60,1\na,600,2\n");
  expect(twice.code).toBe(2);
  expect(twice.err).toContain('series "a", column timestamp: "600" must occur only once in a series');
});

test.each([
  ["", 'line 1: ""'],
  ["a,60,1\n", 'line 1: "a,60,1"'],
  ["series,time,count\n", 'line 1: "series,time,count"'],
])("a file that does not begin with the header %j is refused", async (text, named) => {
  const { code, err } = await replay(text);
  expect(code).toBe(2);
  expect(err).toContain(`${named} must be the header: series,timestamp,count`);
});

test("every usage mistake is reported at once", async () => {
  const args = [
    "--counts",
    "x.csv",
    "--zone",
    "1",
    "--z",
    "high",
    "--start",
    "2026-11-02",
    "--end",
    "2026-11-01",
  ];
  const { code, err } = await run(args);
  expect(code).toBe(2);
  for (const named of [
    '--zone "1" must be left out',
    '--z "high" must be',
    '--end "2026-11-01" must be later',
  ])
    expect(err).toContain(named);
  expect((await run([])).err).toContain("--counts is missing");
  expect(await run(["--counts", path.join(folder, "none.csv")])).toMatchObject({ code: 2 });
});

test("the stored minutes of a zone are replayed, one rule or all", async () => {
  const database = await createMigratedDatabase();
  try {
    const stored = ["942100", "none"].flatMap((ruleId) =>
      traffic.map(({ second, count }) => ({
        startsAt: new Date(second * 1_000),
        zoneId: 101,
        ruleId,
        width: 60,
        total: ruleId === "none" ? 1 : count,
        blocked: ruleId === "none" ? 1 : count,
      })),
    );
    for (let at = 0; at < stored.length; at += 1_000)
      await database.db.insert(ruleBuckets).values(stored.slice(at, at + 1_000));
    const environment = { DATABASE_URL: database.url };
    const found = async (...args: string[]) =>
      JSON.parse((await run(["--zone", "101", "--json", ...args], environment)).out);
    expect(await found("--days", "3")).toMatchObject({
      series: 2,
      alerts: [{ series: "101/942100", from: ATTACK_ISO, severity: "critical" }],
    });
    expect(await found("--rule", "none")).toMatchObject({ series: 1, seriesDays: 7, alerts: [] });
    expect((await found("--days", "1")).alerts).toEqual([]);
  } finally {
    await database.drop();
  }
});
