import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { readEntries } from "#faces/cli/backtest/replay-events.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { describeScores, Figures, toFigures, withFigures } from "../bench/message/describe-scores.ts";
import { type DrawnZone, drawSituation } from "../bench/message/draw-world.ts";
import { type CaseLabel, type Labels, readLabels, WORLDS } from "../bench/message/labels.ts";
import { readMessages } from "../bench/message/read-messages.ts";
import { macroF1, scoreMessages } from "../bench/message/score-messages.ts";
import { SITUATIONS } from "../bench/message/situations/situations.ts";

/** Situations are drawn as in the benchmark, with two hours of everyday traffic before them. */
const SHORT = { world: "requests", seed: 7, repeats: 1, historyDays: 1 / 12 } as const;
const drawn = new Map(SITUATIONS.map((one) => [one.name, drawSituation(one, 0, SHORT)]));
const zoneOf = (name: string) => {
  const zone = drawn.get(name);
  if (zone === undefined) throw new RangeError(`no situation ${name}`);
  return zone;
};
const hashOf = ({ label, cases, lines }: DrawnZone) =>
  createHash("sha256")
    .update(JSON.stringify([label, cases]))
    .update(lines().join(""))
    .digest("hex");

const SOME = ["search-operators", "traversal", "quiet-shop", "second-traversal"];

test.each(WORLDS)("a world of %s has the same bytes for the same seed", (world) => {
  for (const one of SITUATIONS.filter(({ name }) => SOME.includes(name))) {
    const options = { ...SHORT, world };
    const first = hashOf(world === "requests" ? zoneOf(one.name) : drawSituation(one, 0, options));
    expect(hashOf(drawSituation(one, 0, options))).toBe(first);
    expect(hashOf(drawSituation(one, 0, { ...options, seed: 8 }))).not.toBe(first);
    expect(hashOf(drawSituation(one, 1, options))).not.toBe(first);
  }
});

test("every situation is drawn, with labels for all of its cases", () => {
  expect(SITUATIONS.length).toBeGreaterThan(40);
  expect(drawn.size).toBe(SITUATIONS.length);
  expect([...drawn.values()].filter(({ label }) => label.events === 0)).toEqual([]);
  const due = SITUATIONS.map(
    ({ cases }) => Object.values(cases).filter(({ truth }) => truth !== "nothing").length,
  );
  expect([...drawn.values()].map(({ cases }) => cases.length)).toEqual(due);
  expect([...drawn.values()].flatMap(({ cases }) => cases).filter(({ requests }) => requests === 0)).toEqual(
    [],
  );
});

test("each half has half of the cases of each truth, within three", () => {
  const labels = [...drawn.values()].flatMap(({ cases }) => cases);
  for (const all of Map.groupBy(labels, (one) => one.truth).values()) {
    const fitted = all.filter(({ half }) => half === "fitted").length;
    expect(Math.abs(2 * fitted - all.length)).toBeLessThanOrEqual(3);
  }
});

test("backtest reads the lines of every situation", async () => {
  const seen = new Map<string, number>();
  async function* chunks() {
    for (const name of SOME) yield Buffer.from(zoneOf(name).lines().join(""));
  }
  const mistakes = await readEntries(chunks(), BUILT_IN_ACTIONS, (zone) => {
    seen.set(zone, (seen.get(zone) ?? 0) + 1);
    return undefined;
  });
  expect(mistakes).toEqual([]);
  expect([...seen.values()]).toEqual(SOME.map((name) => zoneOf(name).label.events));
});

test("the events of a zone are in the order of time", () => {
  for (const name of SOME) {
    const times = zoneOf(name)
      .lines()
      .map((line) => Number(/"timestamp":(\d+)/.exec(line)?.[1]));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  }
});

test("a second wave begins 30 to 60 minutes after the first and has other addresses", () => {
  const waves = [...drawn.values()]
    .flatMap(({ cases }) => cases)
    .filter(({ wave, situation }) => wave !== null && situation !== "wave-while-open");
  expect(waves.length).toBeGreaterThanOrEqual(4);
  for (const wave of waves) {
    const first = zoneOf(wave.situation).cases.find(({ case: name }) => name === wave.wave);
    const gap = (Date.parse(wave.from) - Date.parse(first?.to ?? "")) / MINUTE_MS;
    expect(gap).toBeGreaterThan(20);
    expect(gap).toBeLessThan(70);
    expect(wave.addresses.filter((one) => !one.endsWith("*") && first?.addresses.includes(one))).toEqual([]);
  }
});

test("an anonymised zone shows no address, and a masked one no last octet", () => {
  const shown = (name: string) =>
    zoneOf(name)
      .lines()
      .map((line) => /"ip":"([^"]*)"/.exec(line)?.[1]);
  expect(new Set(shown("anonymous-attack"))).toEqual(new Set(["0.0.0.0"]));
  expect(shown("masked-attack").filter((ip) => !/\.\*$|:/.test(ip ?? ""))).toEqual([]);
});

const FROM = Date.UTC(2026, 8, 20, 12);
const iso = (minutes: number) => new Date(FROM + minutes * MINUTE_MS).toISOString();
const zone: Labels["zones"][number] = {
  zone: "1",
  situation: "a",
  half: "fitted",
  repeat: 0,
  site: "shop",
  paranoia: 2,
  mode: "block",
  addresses: "plain",
  firstDay: false,
  from: iso(-10 * 1_440),
  to: iso(240),
  events: 9,
};
const attack: CaseLabel = {
  case: "a#1",
  situation: "a",
  half: "fitted",
  zone: "1",
  truth: "attack",
  accept: ["attack", "scanner"],
  tell: "must",
  page: "may",
  wave: null,
  firstDay: false,
  from: iso(0),
  to: iso(20),
  requests: 90,
  events: 90,
  stopped: 90,
  addresses: ["203.0.113.7"],
  senders: 1,
  asns: ["64500"],
  agents: ["x"],
  ja4s: ["t13d"],
  paths: ["/search"],
  rules: { "942100": 90 },
};
const later = { from: iso(60), to: iso(80), addresses: ["203.0.113.8"], ja4s: ["t12d"] };
const wave: CaseLabel = { ...attack, ...later, case: "a/second#1", wave: "a#1" };
const form = { addresses: ["203.0.113.9"], senders: 40, paths: ["/form"], rules: { "942440": 90 } };
const misfire: CaseLabel = {
  ...attack,
  ...form,
  case: "b#1",
  situation: "b",
  zone: "2",
  truth: "misfire",
  accept: ["misfire"],
};
const labels: Labels = {
  world: "requests",
  seed: 1,
  repeats: 1,
  cases: [attack, wave, misfire],
  zones: [zone, { ...zone, zone: "2", situation: "b" }],
};
const HEADER = "zone,at,incident,reason,severity,subject,attackers,rules,verdict,odds,exclusion,extra\n";
const row = (zoneId: number, minutes: number, ...cells: readonly string[]) =>
  `${zoneId},${(FROM + minutes * MINUTE_MS) / 1_000},${cells.join(",")},.9,,more\n`;

const SAID = [
  // Six hours before: everyday traffic.
  row(1, -360, "1", "first", "error", "rule", "", "942440", "attack"),
  row(1, 2, "2", "first", "info", "rule", "", "942100", "unclear"),
  row(1, 12, "2", "turned", "critical", "rule", "", "942100", "attack"),
  row(1, 50, "2", "settled", "critical", "rule", "", "942100", "misfire"),
  row(1, 63, "2", "again", "critical", "incident", "rules_per_ip=203.0.113.8", "942100", "scanner"),
  row(2, 5, "1", "first", "critical", "rule", "", "942440", "attack"),
  row(2, 9, "2", "first", "warning", "incident", "ips_per_url=/form", "942440 949110", "misfire"),
].join("");

test("the scorer gives known figures for a few messages", () => {
  const scored = scoreMessages(labels, readMessages(HEADER + SAID));
  const [first, second, third] = scored.cases;
  expect(first).toMatchObject({
    isNotified: true,
    seconds: 120,
    first: "unclear",
    later: "attack",
    alerts: 1,
  });
  expect(first).toMatchObject({ isFirstRight: false, isLaterRight: true, beginsAsInfo: true, messages: 3 });
  expect(first).toMatchObject({ isCalledMisfire: true, isCritical: true });
  expect(second).toMatchObject({
    isNotified: true,
    seconds: 180,
    first: "scanner",
    isFirstRight: true,
    alerts: 1,
  });
  expect(third).toMatchObject({
    isNotified: true,
    first: "attack",
    later: "attack",
    alerts: 2,
    isCritical: true,
  });
  expect(scored.zones.map(({ falseAlerts, falsePages }) => [falseAlerts, falsePages])).toEqual([
    [1, 1],
    [0, 0],
  ]);
  // Hostile: two right, one misfire beside; misfire: none found.
  expect(macroF1(scored.cases, "later")).toBeCloseTo((2 * 2) / (2 * 2 + 1) / 2, 6);
});

test.each(["settled", "resolved", "turned", "verdict", "advice"])(
  "%s does not tell of a second wave",
  (reason) => {
    const scored = scoreMessages(labels, readMessages(HEADER + SAID.replaceAll(",again,", `,${reason},`)));
    expect(scored.cases[1]?.isNotified).toBe(false);
  },
);

test("the summary names what was notified in each half", () => {
  const scored = scoreMessages(labels, readMessages(HEADER + SAID));
  const text = describeScores([{ labels, scored }]);
  expect(text).toMatch(/^ +requests, fitted +requests, other$/m);
  expect(text).toMatch(/^notified, of those that must be +3 of 3 +0 of 0$/m);
  expect(text).toMatch(/^second waves notified +1 of 1 +0 of 0$/m);
  expect(text).toMatch(/^hostile called misfire ever +1 of 2 +0 of 0$/m);
});

test("worlds stand beside each other, each with its own figures", () => {
  const scored = scoreMessages(labels, readMessages(HEADER + SAID));
  const streams = { labels: { ...labels, world: "streams" } as const, scored: { cases: [], zones: [] } };
  const { columns, rows } = toFigures([{ labels, scored }, streams], ["fitted"]);
  expect(columns).toEqual(["requests, fitted", "streams, fitted"]);
  expect(rows.find(([name]) => name === "second waves notified")).toEqual([
    "second waves notified",
    "1 of 1",
    "0 of 0",
  ]);
  const page = "a\n<!-- bench:message -->\nold\n<!-- /bench:message -->\nb\n";
  const written = withFigures(page, { worlds: ["w"], columns: ["x"], rows: [["  n", "1"]] });
  expect(written).toBe(
    "a\n<!-- bench:message -->\n\n- w\n\n|  | x |\n| --- | --- |\n| n | 1 |\n\n<!-- /bench:message -->\nb\n",
  );
  expect(() => withFigures("no markers", { worlds: ["w"], columns: [], rows: [] })).toThrow("the markers");
});

test("docs/detection-measurements.md has the figures that were written last, of the situations and figures of today", () => {
  const figures = Figures.parse(JSON.parse(readText("bench/message/figures.golden.json")));
  const page = readText("../docs/detection-measurements.md");
  expect(withFigures(page, figures), "npm run bench:message -- --write").toBe(page);
  const now = toFigures(
    WORLDS.map((world) => ({ labels: { ...labels, world }, scored: { cases: [], zones: [] } })),
  );
  expect(figures.columns).toEqual(now.columns);
  expect(figures.rows.map(([name]) => name)).toEqual(now.rows.map(([name]) => name));
  for (const world of figures.worlds) expect(world).toContain(`: ${SITUATIONS.length} situations `);
});

const readText = (name: string) => readFileSync(path.join(import.meta.dirname, "..", name), "utf8");

test("a file of messages with mistakes is refused with line, field and rule", () => {
  const wrong = `${HEADER}${row(1, 0, "1", "first", "loud", "rule", "no_key", "942100", "perhaps")},x\n`;
  expect(() => readMessages(wrong)).toThrow(
    'line 2, field severity: "loud" must be one of info, warning, error, critical',
  );
  expect(() => readMessages(wrong)).toThrow('line 2, field verdict: "perhaps" must be empty or one of');
  expect(() => readMessages(wrong)).toThrow('line 2, field attackers: "no_key" must be kind=key');
  expect(() => readMessages(wrong)).toThrow('line 3, field zone: "" must be the name of a zone');
  expect(() => readMessages("zone,at\n1,2\n")).toThrow("line 1: the header lacks incident");
});

test("labels with mistakes are refused with field, value and rule", () => {
  expect(readLabels(JSON.stringify(labels))).toEqual(labels);
  const wrong = { ...labels, cases: [{ ...attack, truth: "burglar", from: "noon", requests: -HOUR_MS }] };
  expect(() => readLabels(JSON.stringify(wrong))).toThrow('field cases.0.truth: "burglar" is wrong');
  expect(() => readLabels(JSON.stringify(wrong))).toThrow(
    'field cases.0.from: "noon" is wrong: must be an ISO date-time',
  );
  expect(() => readLabels(JSON.stringify(wrong))).toThrow("field cases.0.requests: -3600000 is wrong");
  expect(() => readLabels("{")).toThrow("the labels are not JSON");
});
