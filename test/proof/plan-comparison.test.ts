import fc from "fast-check";
import { expect, test } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt } from "#model/horizon.ts";
import { planComparison } from "#proof/rules/plan-comparison.ts";
import { anHour, NOW, openHour, POLICY, SETTLE_MS } from "./some-hours.ts";

const hour = (back: number) => Date.UTC(2026, 10, 20, 15) - back * HOUR_MS;
const searched = (back: number) => openHour(hour(back), { searchedThrough: hour(back) + HOUR_MS });

test("one span holds every settled hour that was searched, sealed and compared ones as well", () => {
  const matched = { reconciledAt: NOW - 1, upstreamCount: 3, storedCount: 3 };
  const hours = [
    { ...searched(50), state: "sealed" as const },
    { ...searched(48), ...matched },
    searched(2),
    searched(0),
  ];
  expect(planComparison(NOW, hours, POLICY)).toEqual({ from: hour(50), buckets: 49 });
});

test("unsettled hours, hours that are not yet searched, and gaps are not compared", () => {
  const hours = [
    openHour(hour(20)),
    { ...searched(19), state: "gap" as const },
    openHour(hour(1), { searchedThrough: hour(0) - 1 }),
    searched(0),
  ];
  expect(planComparison(NOW, hours, POLICY)).toBeNull();
  expect(planComparison(hour(0) + SETTLE_MS - 1, [searched(1)], POLICY)).toBeNull();
  expect(planComparison(hour(0) + SETTLE_MS, [searched(1)], POLICY)).toEqual({ from: hour(1), buckets: 1 });
});

test("for any records, the span has whole buckets of one hour, at most 500, inside the allowed range", () => {
  const hours = fc.uniqueArray(anHour(), { selector: ({ startsAt }) => startsAt, maxLength: 76 });
  fc.assert(
    fc.property(hours, (given) => {
      const ordered = given.toSorted((a, b) => a.startsAt - b.startsAt);
      const span = planComparison(NOW, ordered, POLICY);
      if (span === null) return;
      expect(span.from % HOUR_MS).toBe(0);
      expect(span.from).toBeGreaterThanOrEqual(horizonAt(NOW));
      expect(span.buckets).toBeGreaterThan(0);
      expect(span.buckets).toBeLessThanOrEqual(500);
      expect(span.from + span.buckets * HOUR_MS + SETTLE_MS).toBeLessThanOrEqual(NOW);
    }),
  );
});
