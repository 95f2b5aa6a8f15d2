import { expect, test } from "vitest";
import { bucketStarts } from "../../../src/archive/query/bucket-starts.ts";
import { estimateCost } from "../../../src/archive/query/estimate-cost.ts";
import { toNetwork } from "../../../src/archive/query/network.ts";
import { planSearch } from "../../../src/archive/query/plan-search.ts";
import { readSearch } from "../../../src/archive/query/read-search.ts";
import { containsTest, foldCase, wildcardTest } from "../../../src/archive/query/text-test.ts";

function plan(body: object) {
  const read = readSearch({ from: 0, to: 1_000, ...body }, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return planSearch(read.search);
}

test("S3: for who sees addresses only masked, free text does not look at them", () => {
  const read = readSearch({ from: 0, to: 1_000, query: "207" }, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  const columnsOf = (isMasked: boolean) => planSearch(read.search, { isMasked }).clauses[0]?.columns;

  expect(columnsOf(false)).toEqual(["ip", "ruleId", "url", "ua", "message"]);
  expect(columnsOf(true)).toEqual(["ruleId", "url", "ua", "message"]);
});

test("an event is in the bucket whose number is how many starts are not after it", () => {
  for (const [from, to, buckets] of [
    [0, 1_000, 3],
    [7, 8, 500],
    [1_700_000_000_123, 1_702_592_000_456, 500],
    [0, 100, 7],
    [5, 505, 500],
  ] as const) {
    const starts = bucketStarts({ from, to, buckets });
    const edges = starts.flatMap((start) => [start - 1, start]).filter((at) => at >= from && at < to);
    for (const at of [from, ...edges, to - 1]) {
      const bucket = starts.filter((start) => start <= at).length;
      expect(bucket).toBe(Math.floor(((at - from) * buckets) / (to - from)));
    }
  }
});

test("LIKE's own signs are escaped, the star alone stands for more", () => {
  expect(containsTest(String.raw`50%_\*`)).toMatchObject({ asciiPattern: String.raw`%50\%\_\\*%` });
  expect(wildcardTest("A**b_*")).toMatchObject({ asciiPattern: String.raw`a%b\_%` });
});

test("what matches every text is not asked at all", () => {
  const filters = ["contains", "wildcard"].map((op) => ({
    field: "url",
    op,
    value: ["x", op === "contains" ? "" : "**"],
  }));
  expect(plan({ filters, query: "" }).clauses).toEqual([]);
});

test("letters fold as JavaScript folds them, but for the three that are documented", () => {
  const others: string[] = [];
  for (let code = 0; code < 0x11_00_00; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const letter = String.fromCodePoint(code);
    if (foldCase(letter) !== letter.toLowerCase()) others.push(letter);
  }
  expect(others).toEqual(["\u0130", "ς", "\u212A"]);
  expect(foldCase("ΟΔΟΣ")).toBe("οδοσ");
});

test("a network is written as Postgres reads it, without bits behind its prefix", () => {
  expect(toNetwork("203.0.113.77/20")).toBe("203.0.112.0/20");
  expect(toNetwork("203.0.113.77")).toBe("203.0.113.77/32");
  expect(toNetwork("2001:DB8::1/33")).toBe("2001:db8:0:0:0:0:0:0/33");
  expect(toNetwork("fe80::1%eth0")).toBe("fe80:0:0:0:0:0:0:1/128");
  expect(toNetwork("203.0.113.0/33")).toBeNull();
});

test("counts made in advance are for questions about what they count", () => {
  const eq = (field: string) => ({ filters: [{ field, op: "eq", value: ["a"] }] });
  expect(plan({ groupBy: ["country"], ...eq("country") }).isCountable).toBe(true);
  expect(plan({ groupBy: ["country"], ...eq("ruleId") }).isCountable).toBe(false);
  expect(plan({ groupBy: ["country", "ruleId"] }).isCountable).toBe(false);
  expect(plan(eq("country")).isCountable).toBe(false);
  expect(plan({ groupBy: ["country"], ...eq("ip") }).isCountable).toBe(false);
  expect(plan({ groupBy: ["ip"] }).isCountable).toBe(false);
  expect(plan({ groupBy: ["country"], query: "a" }).isCountable).toBe(false);
});

test("what is noted of each event is for questions about what is noted, each by itself", () => {
  const eq = (field: string) => ({ filters: [{ field, op: "eq", value: ["a"] }] });
  expect(plan({ groupBy: ["country", "ruleId"] }).isCoded).toBe(true);
  expect(plan({ groupBy: ["country"], ...eq("ruleId") }).isCoded).toBe(true);
  expect(plan({ groupBy: ["country", "ip"] }).isCoded).toBe(false);
  expect(plan({ groupBy: ["country"], ...eq("url") }).isCoded).toBe(false);
  expect(plan({ groupBy: ["country", "action"], query: "a" }).isCoded).toBe(false);
  expect(plan(eq("country")).isCoded).toBe(false);
});

test("a text longer than its column is found by its whole", () => {
  const long = `https://example.com/${"a".repeat(9_000)}`;
  const [clause] = plan({ filters: [{ field: "url", op: "eq", value: [long] }] }).clauses;
  const [asked] = clause?.tests ?? [];
  expect(asked?.kind === "equals" && asked.texts[0]?.length).toBe(8_192);
});

const MOST = { looseEvents: 150_000, codedEvents: 20_000_000 };

test("a search costs what it has to read", () => {
  const window = { events: 10_000_000, openEvents: 100_000 };
  const scan = estimateCost(
    plan({ filters: [{ field: "ua", op: "contains", value: ["ab"] }] }),
    window,
    MOST,
  );
  const indexed = estimateCost(
    plan({ filters: [{ field: "ua", op: "contains", value: ["abc"] }] }),
    window,
    MOST,
  );
  const page = estimateCost(plan({ page: 10_000 }), window, MOST);
  const counted = estimateCost(plan({ groupBy: ["country"] }), window, MOST);
  const coded = estimateCost(plan({ groupBy: ["country", "action"] }), window, MOST);
  expect(scan).toBe(10_000_000);
  expect(indexed).toBeLessThan(scan / 5);
  expect(counted).toBeLessThan(scan / 20);
  expect(coded).toBeLessThan(scan / 5);
  expect(page).toBeLessThan(1_000);
});

test("several dimensions cost all of their events where what is noted of each is not read: too many open ones, or too many", () => {
  const cost = (events: number, openEvents: number) =>
    estimateCost(plan({ groupBy: ["country", "action"] }), { events, openEvents }, MOST);
  expect(cost(20_150_000, 150_000)).toBe(2_150_000);
  expect(cost(20_150_001, 150_001)).toBe(20_150_001);
  expect(cost(20_150_001, 150_000)).toBe(20_150_001);
});

test("a text that is looked for in many columns is looked up only where all of them have an index for it", () => {
  const window = { events: 10_000_000, openEvents: 0 };
  const cost = (body: object) => estimateCost(plan({ page: 1, ...body }), window, MOST);
  expect(cost({ query: "abc" })).toBe(1_000_000);
  expect(cost({ query: "ab" })).toBe(10_000_000);
  const filter = (field: string, value: string) => ({ filters: [{ field, op: "contains", value: [value] }] });
  expect(cost(filter("ua", "abc"))).toBe(1_000_000);
  expect(cost(filter("country", "abc"))).toBe(10_000_000);
  const both = { filters: [filter("ua", "abc"), filter("ua", "ab")].flatMap(({ filters }) => filters) };
  expect(cost(both)).toBe(1_000_000);
  const either = { filters: [{ field: "ua", op: "contains", value: ["abc", "ab"] }] };
  expect(cost(either)).toBe(10_000_000);
});

test("the rules that are asked for are those that every filter names, where nothing but rules is asked for", () => {
  const rules = (...values: string[][]) =>
    plan({ filters: values.map((value) => ({ field: "ruleId", op: "in", value })) }).rules;
  expect(rules()).toBeNull();
  expect(rules(["1", "2"])).toEqual(["1", "2"]);
  expect(rules(["1", "2"], ["2", "3"])).toEqual(["2"]);
  expect(rules(["1"], ["2"])).toEqual([]);
  const other = { field: "ip", op: "eq", value: ["203.0.113.7"] };
  expect(plan({ filters: [{ field: "ruleId", op: "eq", value: ["1"] }, other] }).rules).toBeUndefined();
});
