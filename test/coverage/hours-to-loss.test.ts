import { expect, test } from "vitest";
import { hoursToLoss } from "../../src/coverage/hours-to-loss.ts";

const NOW = Date.parse("2026-11-20T15:30:00Z");
const HOUR_MS = 3_600_000;
/** Of the platform's 72 hours, less the two minutes that are never asked for. */
const HORIZON = NOW - 72 * HOUR_MS + 120_000;
const FIRST_HOUR = Date.parse("2026-11-17T15:00:00Z");

function searched(throughOf: (index: number) => number | null) {
  return Array.from({ length: 73 }, (_, i) => ({
    startsAt: FIRST_HOUR + i * HOUR_MS,
    searchedThrough: throughOf(i),
  }));
}

const whole = (i: number) => FIRST_HOUR + (i + 1) * HOUR_MS;

test("nothing is at risk when every ended hour was searched to its end", () => {
  expect(
    hoursToLoss(
      NOW,
      searched((i) => (i === 72 ? null : whole(i))),
    ),
  ).toBeNull();
});

test("the oldest unfinished hour decides, from where it was left", () => {
  const hours = searched((i) => (i === 10 ? whole(9) + HOUR_MS / 2 : i === 40 ? null : whole(i)));
  expect(hoursToLoss(NOW, hours)).toBeCloseTo((whole(9) + HOUR_MS / 2 - HORIZON) / HOUR_MS, 9);
});

test("an hour whose beginning is being forgotten has no time left", () => {
  expect(hoursToLoss(NOW, [])).toBe(0);
  expect(
    hoursToLoss(
      NOW,
      searched(() => null),
    ),
  ).toBe(0);
});
