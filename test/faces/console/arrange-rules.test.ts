import { expect, test } from "vitest";
import { arrangeRules, nextOrder, readOrder } from "#faces/console/pages/rule/arrange-rules.ts";

const COUNTS = { blocked: 0, challenged: 0, logged: 0 };
const RULES = [
  { ...COUNTS, ruleId: "942100", title: "SQL injection", total: 90, baseline: 100, openSpikeId: null },
  { ...COUNTS, ruleId: "1048576", title: null, total: 50, baseline: null, openSpikeId: null },
  { ...COUNTS, ruleId: "941100", title: "Cross-site scripting", total: 40, baseline: 10, openSpikeId: 7 },
  {
    ...COUNTS,
    ruleId: "932160",
    title: "Remote command execution",
    total: 3,
    baseline: 0,
    openSpikeId: null,
  },
];
const ALL = { text: "", isSpiking: false };

function ids(order: string | null, filter = ALL): string[] {
  return arrangeRules(RULES, readOrder(order), filter).map(({ ruleId }) => ruleId);
}

test("without an order the rule with most events comes first", () => {
  expect(ids(null)).toEqual(["942100", "1048576", "941100", "932160"]);
  expect(ids("-nothing")).toEqual(ids(null));
});

test("rules are sorted by change, a rule that is new first and one without a known usual count last", () => {
  expect(ids("-change")).toEqual(["932160", "941100", "942100", "1048576"]);
  expect(ids("change")).toEqual(["1048576", "942100", "941100", "932160"]);
});

test("rules are sorted by their number as a number", () => {
  expect(ids("rule")).toEqual(["932160", "941100", "942100", "1048576"]);
});

test("rules are filtered by words of their number or title, and by an open spike", () => {
  expect(ids(null, { ...ALL, text: "CROSS 941" })).toEqual(["941100"]);
  expect(ids(null, { ...ALL, text: "injection 941" })).toEqual([]);
  expect(ids(null, { ...ALL, isSpiking: true })).toEqual(["941100"]);
});

test("a click on a column sorts its highest numbers first, and a second click turns the order", () => {
  expect(nextOrder(readOrder(null), "change")).toBe("-change");
  expect(nextOrder(readOrder("-change"), "change")).toBe("change");
  expect(nextOrder(readOrder(null), "rule")).toBe("rule");
});
