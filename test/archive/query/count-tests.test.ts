import { expect, test } from "vitest";
import { countTests, planSearch } from "#archive/rules/query/plan-search.ts";
import { refuseManyTests } from "#archive/rules/query/read-search.ts";
import { DAY_MS } from "#lib/units.ts";
import { mustRead } from "./world.ts";

const texts = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `v${from + index}`);
const contains = (value: string[], field = "url") => ({ field, op: "contains", value });
const windowOf = (days: number) => ({ from: 0, to: days * DAY_MS });

test("a value and a filter that is there twice count once, and fifty equal texts count as one test", () => {
  expect(countTests([contains(["a", "b", "a"]), contains(["a", "b"]), contains(["c"], "ua")])).toBe(3);
  expect(countTests([{ field: "ip", op: "in", value: texts(51) }])).toBe(2);
  expect(countTests([{}, { value: "x" }, { op: "eq", value: [] }])).toBe(0);
});

test.each([
  [
    { ...windowOf(3), filters: Array.from({ length: 50 }, (_, n) => contains(texts(1_000, n * 1_000))) },
    false,
  ],
  [{ ...windowOf(3), filters: Array.from({ length: 40 }, (_, n) => contains(texts(400, n * 1_000))) }, false],
  [{ ...windowOf(3), filters: Array.from({ length: 45 }, (_, n) => contains(texts(800, n * 1_000))) }, false],
  [{ ...windowOf(3), filters: Array.from({ length: 50 }, () => contains(texts(1_000))) }, true],
  [{ ...windowOf(1), filters: [contains(texts(5_000))] }, true],
  [{ ...windowOf(1), filters: [contains(texts(5_001))] }, false],
  [{ ...windowOf(20), filters: [contains(texts(1_000))] }, true],
  [{ ...windowOf(20), filters: [contains(texts(1_001))] }, false],
  [{ ...windowOf(400), filters: [contains(texts(200))] }, true],
  [{ ...windowOf(400), filters: [contains(texts(201))] }, false],
  [{ ...windowOf(400), filters: [{ field: "ip", op: "in", value: texts(1_000) }] }, true],
  [{ from: "x", to: null, filters: "y" }, true],
  [null, true],
])("case %#: the tests of a whole request are weighed by its time range", (body, isAllowed) => {
  const refused = refuseManyTests(body)?.["filters"]?.[0] ?? null;
  const told = expect.stringMatching(/^The filters ask for \d+ tests; at most \d+ are allowed/);
  expect(refused).toEqual(isAllowed ? null : told);
});

test("all values of a filter become one test once a request has many", () => {
  const plan = planSearch(mustRead({ ...windowOf(1), filters: [contains([...texts(17), "É", "ß*"])] }));
  expect(plan.clauses).toHaveLength(1);
  expect(plan.clauses[0]?.tests).toMatchObject([{ kind: "likeAny" }]);
  const few = planSearch(mustRead({ ...windowOf(1), filters: [contains(texts(3)), contains(texts(3))] }));
  expect(few.clauses.map(({ tests }) => tests.map(({ kind }) => kind))).toEqual([["like", "like", "like"]]);
});
