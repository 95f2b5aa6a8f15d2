import fc from "fast-check";
import { expect, test } from "vitest";
import { readSearch } from "#archive/rules/query/read-search.ts";
import { readSearch as readNaively } from "#emulator/query/request.ts";

const WINDOW = { from: 1, to: 2 };

function search(body: object) {
  const read = readSearch({ ...WINDOW, ...body }, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return read.search;
}

test("values out of bounds are clamped, and unset values have their defaults", () => {
  expect(search({})).toMatchObject({
    page: 0,
    pageSize: 50,
    buckets: 0,
    query: "",
    filters: [],
    groupBy: [],
  });
  expect(search({ pageSize: 0, buckets: -1, page: -5 })).toMatchObject({ pageSize: 1, buckets: 0, page: 0 });
  expect(search({ pageSize: 501, buckets: 501 })).toMatchObject({ pageSize: 500, buckets: 500 });
  expect(search({ query: null, filters: null, groupBy: null })).toMatchObject({ query: "", filters: [] });
});

test("a dimension that is asked for twice groups once, where it came first", () => {
  expect(search({ groupBy: ["ip", "ruleId", "ip"] }).groupBy).toEqual(["ip", "ruleId"]);
});

test("every mistake of a body is named at once, with field, value and rule", () => {
  const filters = [
    { field: "host", op: "regex", value: [] },
    { field: "ua", op: "cidr", value: ["nowhere"] },
    7,
  ];
  const read = readSearch({ from: 5, to: 5, buckets: "x", groupBy: ["day"], filters, limit: 3 }, "search");
  const mistakes = "mistakes" in read ? read.mistakes : {};
  expect(Object.keys(mistakes).sort()).toEqual([
    "buckets",
    "filters[0].field",
    "filters[0].op",
    "filters[0].value",
    "filters[1].op",
    "filters[1].value",
    "filters[2]",
    "groupBy[0]",
    "limit",
    "to",
  ]);
  expect(mistakes["filters[1].value"]?.[0]).toContain('"nowhere"');
  expect(mistakes["to"]).toEqual(["The value 5 is not valid: to must be after from."]);
});

test("an export takes no grouping and no paging", () => {
  const read = readSearch({ ...WINDOW, page: 0, groupBy: [] }, "export");
  expect("mistakes" in read && Object.keys(read.mistakes)).toEqual(["page", "groupBy"]);
});

test("a request cannot be larger than what a statement can be made of", () => {
  const many = Array.from({ length: 51 }, () => ({ field: "ua", op: "eq", value: ["a"] }));
  const values = Array.from({ length: 1_001 }, String);
  const long = "x".repeat(10_001);
  const body = { ...WINDOW, query: long, filters: [{ field: "ua", op: "in", value: values }] };
  expect(readSearch({ ...WINDOW, filters: many }, "search")).toHaveProperty("mistakes.filters");
  expect(readSearch(body, "search")).toHaveProperty(["mistakes", "filters[0].value"]);
  expect(readSearch(body, "search")).toHaveProperty("mistakes.query");
});

test("texts that cannot be stored are looked for as they were stored", () => {
  const filters = [{ field: "url", op: "eq", value: ["a\0b\uD800"] }];
  expect(search({ filters, query: "\0" })).toMatchObject({
    query: "\uFFFD",
    filters: [{ value: ["a\uFFFDb\uFFFD"] }],
  });
});

test("no body is read otherwise than the platform reads it, and none breaks the reader", () => {
  const text = fc.constantFrom("ip", "eq", "cidr", "10.0.0.0/8", "::1", "*", "", "x");
  const value = fc.oneof(fc.integer(), text, fc.constant(null), fc.boolean(), fc.array(text), fc.double());
  const filter = fc.oneof(value, fc.record({ field: value, op: value, value }, { requiredKeys: [] }));
  const members = { query: value, groupBy: value, buckets: value, page: value, pageSize: value };
  const body = fc.record(
    { from: value, to: value, filters: fc.oneof(value, fc.array(filter)), ...members, other: value },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(
      fc.oneof(body, value),
      fc.constantFrom("search" as const, "export" as const),
      (given, kind) => {
        // Compared as entries, because the order of mistakes is part of the answer.
        const plain = (read: ReturnType<typeof readSearch>) =>
          "search" in read ? read.search : Object.entries(read.mistakes);
        expect(plain(readSearch(given, kind))).toEqual(plain(readNaively(given, kind)));
      },
    ),
    { numRuns: 2_000 },
  );
});

test("numbers are whole and of 32 bits, and a filter holds as many values as are allowed and not one more", () => {
  const mistakesOf = (body: object) => {
    const read = readSearch({ ...WINDOW, ...body }, "search");
    return "mistakes" in read ? Object.keys(read.mistakes) : [];
  };
  for (const page of [2 ** 31 - 1, -(2 ** 31)]) expect(mistakesOf({ page })).toEqual([]);
  for (const page of [2 ** 31, -(2 ** 31) - 1, 0.5, "1", null])
    expect(mistakesOf({ page })).toEqual(["page"]);
  const filters = (count: number) => [{ field: "ruleId", op: "in", value: Array(count).fill("1") }];
  expect(mistakesOf({ filters: filters(1_000) })).toEqual([]);
  expect(mistakesOf({ filters: filters(1_001) })).toEqual(["filters[0].value"]);
});
