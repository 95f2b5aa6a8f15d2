import fc from "fast-check";
import { expect, test } from "vitest";
import { planPeriods } from "#stages/coverage/plan-periods.ts";

test("few zones are polled as configured", () => {
  expect(planPeriods({ zones: 90, requestsPerSecond: 10, pollEveryMs: 30_000 })).toEqual({
    pollEveryMs: 30_000,
    shortPassEveryMs: 90_000,
  });
});

test("200 zones within 10 requests a second are polled every 34 seconds", () => {
  expect(planPeriods({ zones: 200, requestsPerSecond: 10, pollEveryMs: 30_000 })).toEqual({
    pollEveryMs: 34_000,
    shortPassEveryMs: 200_000,
  });
});

test("polls and short passes never take more than 70 % of the budget, and periods are whole seconds", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 1, max: 1_000, noNaN: true }),
      (zones, requestsPerSecond) => {
        const { pollEveryMs, shortPassEveryMs } = planPeriods({
          zones,
          requestsPerSecond,
          pollEveryMs: 1_000,
        });
        const rate = (zones * 1_000) / pollEveryMs + (zones * 1_000) / shortPassEveryMs;
        expect(rate).toBeLessThanOrEqual(0.7 * requestsPerSecond + 1e-9);
        expect(pollEveryMs % 1_000).toBe(0);
      },
    ),
  );
});
