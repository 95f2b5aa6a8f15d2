import { expect, test } from "vitest";
import { planRepairs } from "#proof/rules/plan-search.ts";

const cell = (startsAt: number, ruleId: string, repairs = 0) => ({ startsAt, ruleId, repairs });

test("the hour that expires first comes first, each with exactly its rules", () => {
  expect(planRepairs([cell(2, "a"), cell(1, "b"), cell(2, "c")])).toEqual([
    { startsAt: 1, ruleIds: ["b"] },
    { startsAt: 2, ruleIds: ["a", "c"] },
  ]);
});

test.each([
  ["with more than five rules", ["a", "b", "c", "d", "e", "f"].map((rule) => cell(1, rule))],
  ["with events of no known rule", [cell(1, "a"), cell(1, "")]],
  ["with a rule that was searched twice in vain", [cell(1, "a"), cell(1, "b", 2)]],
])("an hour %s is searched whole", (_what, cells) => {
  expect(planRepairs(cells)).toEqual([{ startsAt: 1, ruleIds: null }]);
  expect(planRepairs(cells.slice(0, 1))).toEqual([{ startsAt: 1, ruleIds: ["a"] }]);
});
