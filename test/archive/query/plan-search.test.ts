import { expect, test } from "vitest";
import { estimateCost } from "#archive/rules/query/estimate-cost.ts";
import { planSearch, toNetwork } from "#archive/rules/query/plan-search.ts";
import { readSearch } from "#archive/rules/query/read-search.ts";
import { containsTest, foldCase, wildcardTest } from "#archive/rules/query/text-test.ts";

function plan(body: object) {
  const read = readSearch({ from: 0, to: 1_000, ...body }, "search", "native");
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

test("LIKE's own signs are escaped, the star alone stands for more", () => {
  expect(containsTest(String.raw`50%_\*`)).toMatchObject({ pattern: String.raw`%50\%\_\\*%` });
  expect(wildcardTest("A**b_*")).toMatchObject({ pattern: String.raw`a%b\_%` });
});

test("a test that matches every text is left out of the plan", () => {
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

test("a text longer than its column is found by its whole", () => {
  const long = `https://example.com/${"a".repeat(9_000)}`;
  const [clause] = plan({ filters: [{ field: "url", op: "eq", value: [long] }] }).clauses;
  const [asked] = clause?.tests ?? [];
  expect(asked?.kind === "equals" && asked.texts[0]?.length).toBe(8_192);
});

test("a search costs the events it reads, and an archived one less than another", () => {
  const window = { events: 10_000_000, archivedEvents: 9_900_000 };
  expect(estimateCost(plan({ page: 10_000 }), window)).toBeLessThan(1_000);
  expect(estimateCost(plan({ groupBy: ["country"] }), window)).toBe(100_000 + 0.15 * 9_900_000);
  // Free text is looked for in five columns.
  expect(estimateCost(plan({ query: "a" }), { events: 10, archivedEvents: 1_000 })).toBeCloseTo(1.5 * 2.5);
});

test.each([
  { name: "200 values of eq", more: { filters: [filter("ip", "in", 200)] }, factor: 1 + 0.3 * 4 },
  { name: "100 texts", more: { filters: [filter("url", "contains", 100)] }, factor: 1 + 0.3 * 100 },
  { name: "100 IPv4 networks", more: { filters: [networks("10.0.#.0/24", 100)] }, factor: 1 + 0.3 * 100 },
  { name: "one IPv6 network", more: { filters: [networks("2001:db8:#::/48", 1)] }, factor: 1 + 0.3 * 31 },
  { name: "100 IPv6 networks", more: { filters: [networks("2001:db8:#::/48", 100)] }, factor: 1 + 0.3 * 130 },
  { name: "groups by address", more: { groupBy: ["ip"] as const }, factor: 1 + 0.3 * 10 },
  { name: "a path", more: { filters: [filter("path", "contains", 1)] }, factor: 1 + 0.3 * 41 },
  {
    name: "20 texts of hosts",
    more: { filters: [filter("host", "contains", 20)] },
    factor: 1 + 0.3 * 20 * 81,
  },
])("a search with $name costs more than one that only reads", ({ more, factor }) => {
  const window = { events: 88_000, archivedEvents: 88_000 };
  expect(estimateCost(plan({ groupBy: ["country"], ...more }), window)).toBeCloseTo(0.15 * 88_000 * factor);
});

function filter(field: "ip" | "url" | "path" | "host", op: "in" | "contains", count: number) {
  return { field, op, value: Array.from({ length: count }, (_, index) => `text${index}`) };
}

function networks(pattern: string, count: number) {
  const value = Array.from({ length: count }, (_, index) => pattern.replace("#", String(index)));
  return { field: "ip", op: "cidr", value } as const;
}
