import { expect, test } from "vitest";
import { computeSourceThresholds } from "#detection/rules/sources/source-thresholds.ts";
import { createHourHistory, putHour } from "#detection/rules/thresholds/hour-history.ts";

const FIRST_DAY = 20_000;

/** The line of `rules_per_ip` after days whose busiest address tried so many rules, once a day at different hours. */
function lineAfter(peaks: readonly number[]): number {
  const history = createHourHistory();
  history.firstHour = FIRST_DAY * 24;
  for (const [day, peak] of peaks.entries())
    putHour(history, (FIRST_DAY + day) * 24 + 3 * day, 0, [peak, peak, peak]);
  const hour = (FIRST_DAY + peaks.length) * 24 + 1;
  return computeSourceThresholds("rules_per_ip", history, hour).threshold[2] as number;
}

test("scanners on three days of a week raise the line, those on two days do not", () => {
  expect(lineAfter([0, 12, 0, 12, 0, 12, 0])).toBeCloseTo(12 * 1.4);
  expect(lineAfter([0, 12, 0, 12, 0, 0, 0])).toBe(15);
});

test("while four days are known, scanners on two of them raise the line", () => {
  expect(lineAfter([0, 12, 0, 12])).toBeCloseTo(12 * 1.4);
  expect(lineAfter([0, 12, 0, 0])).toBe(15);
});

test("no habit raises the line above twenty rules", () => {
  expect(lineAfter([40, 40, 40, 0, 40, 0, 40])).toBe(20);
});
