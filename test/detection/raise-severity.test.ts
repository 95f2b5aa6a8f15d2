import { expect, test } from "vitest";
import { createRiseCounter, raiseSeverity } from "#stages/detection/raise-severity.ts";

test("other rules that rise raise the severity by one step, however many, and never beyond critical", () => {
  expect((["warning", "error", "critical"] as const).map((one) => raiseSeverity(one, 1))).toEqual([
    "error",
    "critical",
    "critical",
  ]);
  expect(raiseSeverity("warning", 40)).toBe("error");
  expect(raiseSeverity("warning", 0)).toBe("warning");
});

test("a severity never falls while the spike lasts, and the same concurrent spikes raise it once", () => {
  const first = raiseSeverity("warning", 2);
  expect(raiseSeverity("warning", 2, first)).toBe("error");
  expect(raiseSeverity("warning", 0, first)).toBe("error");
  expect(raiseSeverity("error", 2, first)).toBe("critical");
});

test("concurrent spikes opened within a quarter of an hour; new rules neither count nor have any", () => {
  const spike = (openedAt: number) => ({ openedAt, kind: "spike" as const });
  const news = { openedAt: 100, kind: "new-rule" as const };
  const [one, early] = [spike(100), spike(84)];
  const companyOf = createRiseCounter([one, early, spike(85), spike(115), spike(116), news]);
  expect([companyOf(one), companyOf(early), companyOf(news)]).toEqual([2, 1, 0]);
  expect(createRiseCounter([one])(one)).toBe(0);
  expect(createRiseCounter([one, spike(100)])(one)).toBe(1);
});
