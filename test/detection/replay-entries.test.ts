import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { parse } from "csv-parse/sync";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backtestCommand } from "#faces/cli/backtest/backtest.ts";
import { readEntries, readEvents } from "#faces/cli/backtest/replay-events.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createActionStates } from "#model/action-class.ts";
import { drawZone } from "../bench/sources/draw-zone.ts";
import { START_MINUTE } from "../bench/sources/zone.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const START = Date.UTC(2026, 10, 1);
const HEADER = "zone,timestamp,rule_id,ip,asn,country,ja4,ua,url,action\n";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "entries-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function run(text: string | Buffer, name = "events.ndjson") {
  const [file, out] = [path.join(folder, name), path.join(folder, "out.csv")];
  await rm(out, { force: true });
  await writeFile(file, text);
  const ran = await runStoreCommand(backtestCommand, {}, ["--events", file, "--alerts", out], { now: NOW });
  return { ...ran, alerts: await readFile(out, "utf8").catch(() => null) };
}

interface Row {
  readonly at: string;
  readonly incident: string;
  readonly reason: string;
  readonly verdict: string;
  readonly odds: string;
  readonly exclusion: string;
}
const rowsOf = (alerts: string | null): Row[] => parse(alerts ?? "", { columns: true });

describe("the same events as CSV and as entries", () => {
  const events = drawZone(5, 6).events.filter(({ minute }) => minute < START_MINUTE + 5 * 1_440);

  test("have the same messages with the same verdicts, if no entry has a record", async () => {
    const csv = events.map(({ minute, ruleId, ip, asn, ja4, ua, url }) =>
      ["7", minute * 60, ruleId, ip, asn, "XX", ja4, ua, url, "log"].join(","),
    );
    const entries = events.map(({ minute, ruleId, asn, ...fields }, i) => {
      const labels = { asn, country: "XX", ruleId, status: "Logged" };
      const { ip, ja4, ua, url } = fields;
      return JSON.stringify({
        zone: 7,
        logId: `e${i}`,
        timestamp: minute * MINUTE_MS,
        labels,
        fields: { ip, ja4, ua, url },
      });
    });
    const asCsv = await run(`${HEADER}${csv.join("\n")}\n`, "events.csv");
    const asEntries = await run(gzipSync(entries.join("\n")), "events.ndjson.gz");
    expect([asCsv.code, asEntries.code]).toEqual([0, 0]);
    expect(rowsOf(asEntries.alerts).filter(({ reason }) => reason === "first").length).toBeGreaterThan(5);
    expect(asEntries.alerts).toBe(asCsv.alerts);
  });
});

/** A visitor's post, or another request, as the platform lists it. */
function entry(at: number, i: number, { rule = "942440", session = true } = {}): string {
  const url = `https://shop.example/products/${i % 50}/reviews`;
  const log = {
    Message: "SQL Comment Sequence Detected",
    Url: url,
    RemoteIp: `203.0.${i % 240}.*`,
    UrlEncodedBody: null,
    Headers: [
      { Name: "Host", Value: "shop.example" },
      { Name: "User-Agent", Value: `Mozilla/5.0 (${i % 9})` },
      ...(session
        ? [
            { Name: "Cookie", Value: "session=1" },
            { Name: "Referer", Value: url },
          ]
        : []),
    ],
    TriggerMatch: { Key: "ARGS:title", Value: "great -- would buy again" },
  };
  const labels = {
    asn: String(100 + (i % 7)),
    country: "DE",
    ruleId: rule,
    severity: "",
    method: "POST",
    status: "Blocked",
  };
  return JSON.stringify({
    zone: "shop",
    logId: `${rule}-${i}`,
    timestamp: at,
    log: JSON.stringify(log),
    labels,
  });
}

test("a misfire that goes on at the same rate settles its alert, and one that stops is resolved", async () => {
  const usual = Array.from({ length: 8 * 48 }, (_, i) =>
    entry(START + i * (HOUR_MS / 2), i, { rule: "941100" }),
  );
  const from = START + 8 * DAY_MS;
  const misfire = Array.from({ length: 900 }, (_, i) => entry(from + i * 48_000, i));
  const replay = async (events: readonly string[]) => {
    const { code, alerts } = await run([...usual, ...events].join("\n"));
    expect(code).toBe(0);
    expect(rowsOf(alerts).filter(({ odds }) => Number(odds) > 0.95)).toEqual([]);
    return rowsOf(alerts).map(({ incident, reason, verdict }) => `${incident} ${reason} ${verdict}`);
  };
  expect(await replay(misfire)).toEqual(["1 first misfire", "1 settled misfire"]);
  const stopped = [...misfire.slice(0, 60), entry(from + DAY_MS, 7)];
  expect(await replay(stopped)).toEqual(["1 first misfire", "1 resolved misfire"]);
});

test("the network, the rule and the action are the labels', the agent is the header's, and fields win", async () => {
  const scan = (from: number, fields?: object) =>
    Array.from({ length: 60 }, (_, i) => {
      const one = JSON.parse(entry(from + i * 5_000, 7, { rule: `9${30_000 + i}` })) as object;
      return JSON.stringify({ ...one, logId: `s${from}${i}`, ...(fields === undefined ? {} : { fields }) });
    });
  const usual = Array.from({ length: 400 }, (_, i) =>
    entry(START + i * (HOUR_MS / 2), i, { rule: "941100" }),
  );
  const from = START + 9 * DAY_MS;
  const masked = await run([...usual, ...scan(from)].join("\n"));
  const resolved = await run([...usual, ...scan(from, { ip: "203.0.113.9" })].join("\n"));
  expect(masked.alerts).toContain("rules_per_ip=203.0.7.*");
  expect(resolved.alerts).toContain("rules_per_ip=203.0.113.9");
});

test("an unusual word of an action says what became of a request, and changes no rule's action", async () => {
  const words = ["block", "deny", "allow", "rewrite", "Tar-Pit"];
  const actions = createActionStates({ stopped: ["tarpit"], through: [] });
  const lines = words.map((action, i) =>
    JSON.stringify({ ...JSON.parse(entry(NOW - HOUR_MS + i, i)), fields: { action } }),
  );
  const csv = words.map((word, i) => `7,${NOW / 1_000 - 3_600 + i},942440,203.0.113.7,1,XX,j,u,/a,${word}`);
  const read = async (
    from: typeof readEntries | typeof readEvents,
    text: string,
  ): Promise<(readonly unknown[])[]> => {
    const seen: (readonly unknown[])[] = [];
    async function* chunks() {
      yield Buffer.from(text);
    }
    const mistakes = await from(chunks(), actions, (_zone, _second, { action, fate }) => {
      seen.push([action, fate]);
      return undefined;
    });
    expect(mistakes).toEqual([]);
    return seen;
  };
  const expected = [
    ["blocked", "blocked"],
    ["other", "blocked"],
    ["other", "logged"],
    ["other", "other"],
    ["other", "blocked"],
  ];
  expect(await read(readEntries, lines.join("\n"))).toEqual(expected);
  expect(await read(readEvents, `${HEADER}${csv.join("\n")}\n`)).toEqual(expected);
});

test("names line, field, value and rule of ten mistakes, and writes nothing", async () => {
  const good = JSON.parse(entry(START, 1)) as Record<string, unknown>;
  const lines = [
    "{ no json",
    "",
    JSON.stringify({ ...good, zone: "" }),
    JSON.stringify({ ...good, logId: null }),
    JSON.stringify({ ...good, timestamp: "2026" }),
    JSON.stringify({ ...good, log: 7 }),
    JSON.stringify({ ...good, labels: "x" }),
    JSON.stringify({ ...good, fields: { ip: {} } }),
    JSON.stringify(good),
    JSON.stringify({ ...good, timestamp: START - 1_000 }),
  ];
  const { code, err, alerts } = await run(lines.join("\n"));
  expect([code, alerts]).toEqual([2, null]);
  for (const expected of [
    'line 1: "{ no json" must be a JSON object',
    'line 3, field zone: "" must be a number, or a name',
    'line 4, field logId: "null" must be a text that is not empty',
    'line 5, field timestamp: "2026" must be milliseconds since the epoch',
    'line 6, field log: "7" must be a text with the record\'s JSON',
    'line 7, field labels: "x" must be an object of texts',
    'line 8, field fields: "{"ip":{}}" must be an object of texts',
    `line 10, field timestamp: "${START - 1_000}" must be at least ${START}`,
  ])
    expect(err).toContain(expected);
  expect(err).not.toContain("line 2");
});

test("a line without an end is refused, and records that are no JSON are events without a record", async () => {
  const { code, err } = await run(`{"zone":1,"log":"${"x".repeat(1_100_000)}"}\n`);
  expect(code).toBe(2);
  expect(err).toContain("line 1: a line has at most 1048576 bytes");
  const plain = JSON.stringify({ zone: 1, logId: "1", timestamp: START, log: "no json", labels: {} });
  expect((await run(plain)).code).toBe(0);
});
