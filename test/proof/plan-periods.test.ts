import fc from "fast-check";
import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import { planPeriods } from "#proof/rules/plan-search.ts";

const HALF_MINUTELY = { requestsPerSecond: 10, shortestMs: 30_000, longestMs: 30_000 };

test("few zones are all polled by each run", () => {
  expect(planPeriods({ zones: 90, ...HALF_MINUTELY })).toEqual({
    mostPolls: 180,
    pollEveryMs: 30_000,
    freshMs: 15_000,
    risingRequests: 10,
    shortPassEveryMs: 90_000,
    lateEveryMs: 180_000,
  });
});

test("200 zones within 10 requests a second take turns: each run polls 180", () => {
  expect(planPeriods({ zones: 200, ...HALF_MINUTELY })).toEqual({
    mostPolls: 180,
    pollEveryMs: 60_000,
    freshMs: 15_000,
    risingRequests: 10,
    shortPassEveryMs: 200_000,
    lateEveryMs: 400_000,
  });
});

test("polls and short passes never take more than 70 % of the budget of whole requests, polls of rising zones 10 % more, late looks 5 % or one in ten minutes", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 2, max: 1_000, noNaN: true }),
      fc.integer({ min: 1, max: 3_600 }),
      (zones, requestsPerSecond, seconds) => {
        const pauses = { shortestMs: seconds * 1_000, longestMs: seconds * 1_000 };
        const { mostPolls, pollEveryMs, shortPassEveryMs, risingRequests, lateEveryMs } = planPeriods({
          zones,
          requestsPerSecond,
          ...pauses,
        });
        const rate = Math.min(zones, mostPolls) / seconds + (zones * 1_000) / shortPassEveryMs;
        expect(rate).toBeLessThanOrEqual(0.7 * requestsPerSecond + 1e-9);
        expect(risingRequests).toBeLessThanOrEqual(requestsPerSecond);
        expect(risingRequests > 0).toBe(seconds > 10);
        const isRarest = lateEveryMs === 9.5 * MINUTE_MS;
        expect(isRarest || (zones * 1_000) / lateEveryMs <= 0.05 * requestsPerSecond + 1e-9).toBe(true);
        expect(lateEveryMs).toBeLessThanOrEqual(9.5 * MINUTE_MS);
        expect(pollEveryMs).toBeGreaterThanOrEqual(pauses.longestMs * (zones / mostPolls));
      },
    ),
  );
});
