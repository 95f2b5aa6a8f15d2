import { expect, test } from "vitest";
import { findCronMistakes, firstRun, nextRuns, readPauses } from "#lib/cron.ts";

test.each(["* * * * * *", "*/30 * * * * *", "0 0,30 2-6 * * *", "0 0 3 1 JAN MON", "  0  0 3 * * 7 "])(
  "%s has no mistake",
  (expression) => {
    expect(findCronMistakes(expression)).toEqual([]);
  },
);

test.each([
  ["*/30 * * * *", "six fields"],
  ["@hourly", "six fields"],
  ["", "six fields"],
  ["0 0 0 0 0 0 0", "six fields"],
  ["60 * * * * *", "0 to 59, or a list, range or step of these (*/5) as second, not 60"],
  ["*/90 * * * * *", "as second, not */90"],
  ["*/0 * * * * *", "as second, not */0"],
  ["0 0 24 * * *", "0 to 23, or a list, range or step of these (*/5) as hour, not 24"],
  ["0 0 0 32 * *", "1 to 31, or a list, range or step of these (*/5) as day of month, not 32"],
  ["0 0 0 * 13 *", "as month, not 13"],
  ["0 0 0 * * 8", "as day of week, not 8"],
  ["0 0 0 * * $", "must be written with digits"],
])("%s is a mistake: %s", (expression, rule) => {
  expect(findCronMistakes(expression)).toEqual([expect.stringContaining(rule)]);
});

test("every wrong field is named", () => {
  expect(findCronMistakes("61 61 25 * * *")).toHaveLength(3);
});

test.each<[string, number, number]>([
  ["* * * * * *", 1, 1],
  ["*/30 * * * * *", 30, 30],
  ["0 */5 * * * *", 300, 300],
  ["*/10 0-29 * * * *", 10, 1_810],
  ["0 0 3 * * *", 86_400, 86_400],
  ["0 15 2,14,14 * * *", 43_200, 43_200],
  ["0 0 3 * * 1-5", 86_400, 3 * 86_400],
  ["0 0 7 * * 1", 7 * 86_400, 7 * 86_400],
  ["0 0 7,19 * * 7", 43_200, 6.5 * 86_400],
  ["0 0 3 1 * *", 86_400, Number.POSITIVE_INFINITY],
])("%s pauses for %d to %d seconds", (expression, shortest, longest) => {
  expect(readPauses(expression)).toEqual({ shortestMs: shortest * 1_000, longestMs: longest * 1_000 });
});

test.each([
  ["0 0 7 * * 1", "2026-11-23T00:00:00.000Z", "2026-11-23T07:00:00.000Z"],
  ["0 0 7 * * 1", "2026-11-23T07:00:00.000Z", "2026-11-23T07:00:00.000Z"],
  ["0 0 7 * * 1", "2026-11-23T07:00:00.001Z", "2026-11-30T07:00:00.000Z"],
  ["15,45 30 6 * * 7", "2026-11-23T00:00:00.000Z", "2026-11-29T06:30:15.000Z"],
])("the first run of %s from %s on is at %s", (expression, from, run) => {
  expect(new Date(firstRun(expression, Date.parse(from)) ?? 0).toISOString()).toBe(run);
});

test("an expression without a run in the next eight days has no first run", () => {
  expect(firstRun("0 0 7 1 1 *", Date.parse("2026-11-23"))).toBeNull();
});

test("the next runs are in UTC and in the future", () => {
  const now = Date.now();
  const [first = 0, second] = nextRuns("0 15 3 * * *", 2);
  expect(new Date(first).toISOString()).toContain("T03:15:00.000Z");
  expect(first).toBeGreaterThan(now);
  expect(second).toBe(first + 86_400_000);
});
