import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, horizonAt } from "../../src/coverage/horizon.ts";
import { isClosingSearch, planClosingSearch } from "../../src/coverage/plan-closing-search.ts";
import { anHour, NOW, openHour, POLICY, SETTLE_MS } from "./some-hours.ts";

const START = Date.UTC(2026, 10, 20, 10);
const searched = (startsAt: number) => openHour(startsAt, { searchedThrough: startsAt + HOUR_MS });

test("a settled hour is searched once more from end to end, the one that expires first in front", () => {
  const hours = [
    { ...searched(START), closingSearchAt: NOW - 1 },
    searched(START + HOUR_MS),
    searched(START + 2 * HOUR_MS),
  ];
  const [hour, to] = [START + HOUR_MS, START + 2 * HOUR_MS];
  expect(planClosingSearch(NOW, hours, POLICY)).toEqual({ hour, from: hour, to, isFirst: false });
  expect(planClosingSearch(to + SETTLE_MS - 1, hours.slice(1), POLICY)).toBeNull();
});

test("where the list can no longer be asked, an hour is searched until a search finds nothing new", () => {
  const startsAt = START - 3 * DAY_MS + 8 * HOUR_MS;
  const hour = { ...searched(startsAt), closingSearchAt: NOW - 2_000 };
  expect(planClosingSearch(NOW, [{ ...hour, lastNewAt: NOW - 2_000 }], POLICY)?.hour).toBe(startsAt);
  expect(planClosingSearch(NOW, [{ ...hour, lastNewAt: NOW - 2_001 }], POLICY)).toBeNull();
  expect(
    planClosingSearch(NOW, [{ ...searched(START), closingSearchAt: START, lastNewAt: NOW }], POLICY),
  ).toBeNull();
});

test("whatever is recorded, what is planned is an undecided, settled, whole hour, and counts as its closing search", () => {
  const hours = fc.uniqueArray(anHour(), { selector: ({ startsAt }) => startsAt, maxLength: 76 });
  fc.assert(
    fc.property(hours, (given) => {
      const span = planClosingSearch(NOW, given, POLICY);
      if (span === null) return;
      expect(given.find(({ startsAt }) => startsAt === span.hour)?.state).toBe("open");
      expect(span.from).toBeGreaterThanOrEqual(horizonAt(NOW));
      expect(isClosingSearch(span, NOW, SETTLE_MS)).toBe(true);
    }),
  );
});

test.each([
  ["that began too early", { from: START, to: START + HOUR_MS }, START + HOUR_MS + SETTLE_MS - 1],
  ["without the first moment", { from: START + 1, to: START + HOUR_MS }, NOW],
  ["without the last moment", { from: START, to: START + HOUR_MS - 1 }, NOW],
])("a search %s closes nothing", (_what, span, startedAt) => {
  expect(isClosingSearch({ hour: START, ...span }, startedAt, SETTLE_MS)).toBe(false);
});
