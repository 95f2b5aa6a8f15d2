import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RecordedEvent } from "#alerts/rules/backtest/replay-verdicts.ts";
import { createZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { createDistinctMembers, MAX_MEMBERS } from "#detection/rules/sources/distinct-members.ts";
import { toSourceAddress, toSourcePath } from "#detection/rules/sources/source-event.ts";
import { usualOnDay } from "#detection/rules/sources/usual-rules.ts";
import type { VerdictEvidence } from "#detection/rules/verdict/evidence.ts";
import { judgeVerdict } from "#detection/rules/verdict/judge-verdict.ts";
import { backtestCommand } from "#faces/cli/backtest/backtest.ts";
import { WINDOWS } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { drawZone } from "../bench/sources/draw-zone.ts";
import { START_MINUTE } from "../bench/sources/zone.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const COLUMNS = "zone,at,incident,reason,severity,subject,attackers,rules,verdict,odds,exclusion";
const HEADER = "zone,timestamp,rule_id,ip,asn,country,ja4,ua,url,action\n";
// A small zone of the benchmark, with attacks.
const zone = drawZone(5, 6);

function replay(
  events: readonly (RecordedEvent & { minute: number })[],
  judge?: (evidence: VerdictEvidence) => StoredVerdict,
) {
  const replayed = createZoneReplay({ z: 3.5, floor: 10, fewAddresses: 3, ...(judge && { judge }) });
  for (const event of events) replayed.take(event, event.minute);
  return replayed.finish();
}

describe("a replay of events", () => {
  const all = replay(zone.events);

  test("finds attacks of sources and bursts of rules", () => {
    expect(all.filter(({ subject }) => subject === "rule").length).toBeGreaterThan(0);
    expect(all.filter(({ subject }) => subject === "incident").length).toBeGreaterThan(0);
  });

  test("changes no earlier message if later events are left out", () => {
    for (const days of [3, 5.4]) {
      const cut = START_MINUTE + Math.floor(days * 1_440);
      const part = replay(zone.events.filter(({ minute }) => minute < cut));
      const before = (messages: typeof all) => messages.filter(({ at }) => at < cut);
      expect(before(part)).toEqual(before(all));
    }
  });

  test("raises nothing in the first day of a zone", () => {
    expect(all.filter(({ at }) => at <= START_MINUTE + 1_440)).toEqual([]);
  });
});

test("the counts of every minute are those of a naive recount", () => {
  const members = createDistinctMembers();
  const seen: Seen[] = [];
  const differing: number[] = [];
  for (let i = 0; i < 6_000; i += 1) {
    const minute = 1_000 + Math.floor(i / 20);
    const [key, member] = [`k${(i * i * 7) % 13}`, (i * 31 + (i >> 3)) % 97];
    if (minute % 11 === 0) continue;
    const last = seen.at(-1);
    if (last !== undefined && last.minute < minute) {
      const closed = members.close(last.minute, (name) => (name === "k1" ? [3, 3, 3] : undefined));
      differing.push(...WINDOWS.filter((width, w) => closed[w] !== recount(seen, last.minute, width)));
    }
    members.add(key, member, minute);
    seen.push({ key, member, minute });
  }
  expect(differing).toEqual([]);
});

interface Seen {
  readonly key: string;
  readonly member: number;
  readonly minute: number;
}

/** The largest number of members of a key that was seen in the minute; three are usual for `k1`. */
function recount(seen: readonly Seen[], minute: number, width: number): number {
  const inWindow = seen.filter((one) => one.minute > minute - width);
  const touched = new Set(seen.filter((one) => one.minute === minute).map(({ key }) => key));
  const excess = [...touched].map((name) => {
    const different = new Set(inWindow.filter(({ key }) => key === name).map(({ member }) => member));
    return different.size - (name === "k1" ? 3 : 0);
  });
  return Math.max(0, ...excess);
}

test("a key keeps its newest members, and three times as many keys of one member as are kept hide no large key", () => {
  const members = createDistinctMembers();
  for (let i = 0; i < 3 * MAX_MEMBERS; i += 1) members.add("flood", i, 10);
  for (let i = 0; i < 40; i += 1) members.add("large", i, 10);
  for (let i = 0; i < 150_000; i += 1) members.add(`k${i}`, 0, 11);
  expect([...members.countsOf("flood", 11)]).toEqual([MAX_MEMBERS, MAX_MEMBERS, MAX_MEMBERS]);
  expect([...members.countsOf("large", 11)]).toEqual([40, 40, 40]);
});

test("keys whose members of earlier minutes become too many for a list are counted in full", () => {
  const members = createDistinctMembers();
  const first = 29_000_000;
  const last = first + 50;
  for (let i = 0; i < 8; i += 1)
    for (let key = 0; key < 400; key += 1) members.add(`slow${key}`, i, first + i);
  for (let i = 0; i < 1_900; i += 1) members.add("busy", i, last);
  for (let key = 0; key < 400; key += 1) members.add(`slow${key}`, 8, last);
  const counts = Array.from({ length: 400 }, (_, key) => [...members.countsOf(`slow${key}`, last)]);
  expect(counts.filter((found) => found.join() !== "1,1,9")).toEqual([]);
  expect([...members.countsOf("busy", last)]).toEqual([1_900, 1_900, 1_900]);
});

test("a key that thousands of new members reach every minute counts as many as it may, in little memory", () => {
  const members = createDistinctMembers();
  const first = 29_000_000;
  for (let minute = first; minute < first + 90; minute += 1)
    for (let i = 0; i < 10_000; i += 1) members.add(`k${i % 20}`, minute * 10_000 + i, minute);
  expect([...members.countsOf("k1", first + 89)]).toEqual([1_500, MAX_MEMBERS, MAX_MEMBERS]);
  expect([...members.countsOf("k1", first + 91)]).toEqual([500, MAX_MEMBERS, MAX_MEMBERS]);
  expect([...members.countsOf("k1", first + 149)]).toEqual([0, 0, 0]);
});

test("an IPv6 customer is one sender, and a masked address is kept as it is", () => {
  expect(toSourceAddress("2001:DB8:1:2:3:4:5:6")).toBe("2001:db8:1:2::/64");
  expect(toSourceAddress("2001:db8:1:2::9")).toBe("2001:db8:1:2::/64");
  expect(toSourceAddress("::ffff:198.51.100.7")).toBe("198.51.100.7");
  expect(toSourceAddress("198.51.100.xxx")).toBe("198.51.100.xxx");
  expect(toSourceAddress("2001:db8::x")).toBe("2001:db8::x");
});

test("a path has no host, query or fragment and at most 300 characters", () => {
  expect(toSourcePath("https://example.com/login?a=1#b")).toBe("/login");
  expect(toSourcePath("/login#x?y")).toBe("/login");
  expect(toSourcePath("https://example.com")).toBe("/");
  expect(toSourcePath("")).toBe("");
  expect(toSourcePath(`/${"x".repeat(9_000)}`)).toHaveLength(300);
});

test("the usual count of an address is the second largest day of the last seven", () => {
  const day = (peak: number) => [peak, peak, peak];
  const days = new Map([
    [92, day(50)],
    [93, day(4)],
    [99, day(7)],
    [100, day(60)],
  ]);
  expect([...(usualOnDay(days, 100) ?? [])]).toEqual([4, 4, 4]);
  expect(usualOnDay(new Map([[99, day(7)]]), 100)).toBeUndefined();
});

describe("backtest --events", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "events-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function run(text: string | Buffer, name = "events.csv") {
    const [file, out] = [path.join(folder, name), path.join(folder, "out.csv")];
    await rm(out, { force: true });
    await writeFile(file, text);
    const ran = await runStoreCommand(backtestCommand, {}, ["--events", file, "--alerts", out], { now: NOW });
    return { ...ran, alerts: await readFile(out, "utf8").catch(() => null) };
  }

  test("writes one row per message of a compressed file", async () => {
    const events = zone.events.filter(({ minute }) => minute < START_MINUTE + 4 * 1_440);
    const lines = events.map(({ minute, ruleId, ip, asn, ja4, ua, url }) =>
      [`"a,1"`, minute * 60, ruleId, ip, asn, "XX", ja4, ua, url, "log"].join(","),
    );
    const text = `${HEADER}${lines.join("\n")}\n`;
    const { code, alerts, out } = await run(gzipSync(text), "events.csv.gz");
    expect(code).toBe(0);
    const rows = (alerts ?? "").trimEnd().split("\n");
    expect(rows[0]).toBe(COLUMNS);
    expect(rows.length).toBeGreaterThan(5);
    const logged = events.map((event) => ({ ...event, action: "logged" as const }));
    const expected = replay(logged, judgeVerdict).map(({ at, incident, reason, severity, subject }) =>
      [`"a,1"`, at * 60, incident, reason, severity, subject].join(","),
    );
    expect(rows.slice(1).map((row) => row.split(",").slice(0, 7).join(","))).toEqual(expected);
    expect(out).toMatch(/alerts +\d+ incidents?, \d+ rules? alone/);
  });

  test("names what is wrong in a file, and writes nothing", async () => {
    const { code, err, alerts } = await run(
      `${HEADER}1,120,1,192.0.2.1,,,,,,\n1,60,1,192.0.2.1,,,,,,\n1,1e3,1,,,,,,,\n,60,,,,,,,,\n`,
    );
    expect(code).toBe(2);
    expect(alerts).toBeNull();
    expect(err).toContain('line 3, column timestamp: "60" must be at least 120');
    expect(err).toContain('line 4, column timestamp: "1e3" must be seconds since the epoch');
    expect(err).toContain('line 5, column zone: "" must be a name');
    const missing = await run("zone,timestamp,rule_id,ip\n");
    expect(missing.code).toBe(2);
    expect(missing.err).toContain("it lacks asn, country, ja4, ua, url, action");
    expect((await run("")).code).toBe(2);
  });

  test("takes one event, empty values and very long ones", async () => {
    const long = "x".repeat(8_192);
    const { code, alerts } = await run(`note,${HEADER}n,1,60,,,,,${long},${long},/${long},log\n`);
    expect(code).toBe(0);
    expect(alerts).toBe(`${COLUMNS}\n`);
  });
});

test("a backtest says once which rules change their action, and nothing of rules that fall silent", () => {
  const replayed = createZoneReplay({ z: 3.5, floor: 10, fewAddresses: 3 });
  const start = 29_000_160;
  const flipAt = start + 5 * 1_440;
  const silentAt = start + 6 * 1_440;
  for (let minute = start; minute < start + 7 * 1_440; minute += 1)
    for (const [i, ruleId] of ["941100", "942100", "943100"].entries()) {
      if (minute % 6 !== 2 * i || (ruleId === "943100" && minute >= silentAt)) continue;
      const isFlipped = ruleId === "942100" && minute >= flipAt;
      const ip = `192.0.2.${(minute / 2) % 50}`;
      const shown = { ruleId, ip, asn: "", ja4: "", ua: "", url: "/" };
      replayed.take({ ...shown, action: isFlipped ? "blocked" : "logged" }, minute);
    }
  const messages = replayed.finish();
  expect(messages.map(({ reason, subject, rules }) => [reason, subject, ...rules])).toEqual([
    ["first", "flip", "942100"],
    ["resolved", "flip", "942100"],
  ]);
  const [flip, over] = messages;
  expect(flip?.at).toBeLessThan(flipAt + 6 * 10);
  expect((over?.at ?? 0) - (flip?.at ?? 0)).toBe(1_440);
});

test("a backtest calls no rule changed that is blocked only in requests that match other rules, too", () => {
  const start = 29_000_160;
  const replay = (rules: readonly string[]) => {
    const replayed = createZoneReplay({ z: 3.5, floor: 10, fewAddresses: 3 });
    for (let minute = start; minute < start + 6 * 1_440; minute += 6) {
      const isBlocked = minute >= start + 5 * 1_440;
      const shown = { ip: `192.0.2.${minute % 50}`, asn: "", ja4: "", ua: "", url: "/" };
      for (const ruleId of isBlocked ? rules : ["942100"])
        replayed.take({ ...shown, ruleId, action: isBlocked ? "blocked" : "logged" }, minute);
    }
    return replayed.finish().flatMap(({ subject, rules: named }) => (subject === "flip" ? named : []));
  };
  expect(replay(["942100"])).toContain("942100");
  expect(replay(["942100", "941100"])).toEqual([]);
  // A rule that only adds the others up is no other one.
  expect(replay(["942100", "949110"])).toContain("942100");
});
