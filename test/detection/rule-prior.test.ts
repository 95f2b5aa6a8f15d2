import fc from "fast-check";
import { expect, test } from "vitest";
import { DEFAULT_Z } from "#detection/rules/detection-settings.ts";
import {
  addMinute,
  createHourHistory,
  toDailyCounts,
  toRulePrior,
} from "#detection/rules/thresholds/hour-history.ts";
import { computeThresholds } from "#detection/rules/thresholds/thresholds.ts";
import { WINDOWS } from "#model/kinds.ts";
import { createFractions, drawPoisson } from "./support/histories.ts";
import { findEpisodes } from "./support/scan-history.ts";

const FIRST = 20_000 * 1_440;
const week = (perDay: number) => Array.from({ length: 28 }, () => perDay);

test("a rule the platform has counted for weeks does not alert at its everyday level", () => {
  const levels = fc.constantFrom(24, 240, 2_400, 24_000, 240_000);
  const property = fc.property(
    levels,
    fc.integer(),
    fc.double({ min: 0.7, max: 1.4, noNaN: true }),
    (perDay, seed, off) => {
      const fraction = createFractions(seed);
      const counts = Array.from({ length: 600 }, () => drawPoisson((perDay * off) / 1_440, fraction));
      expect(findEpisodes(counts, FIRST, { z: DEFAULT_Z, prior: toRulePrior(week(perDay)) })).toEqual([]);
    },
  );
  fc.assert(property, { numRuns: 60 });
  const steady = Array.from({ length: 600 }, () => 2);
  expect(findEpisodes(steady, FIRST, { z: DEFAULT_Z })).not.toEqual([]);
});

test("a burst far above what the platform counted is a spike from its first minutes on", () => {
  const counts = Array.from({ length: 200 }, (_, i) => (i >= 100 ? 100 : 1));
  const [spike] = findEpisodes(counts, FIRST, { z: DEFAULT_Z, prior: toRulePrior(week(1_440)) });
  expect((spike?.openedAt ?? 0) - FIRST).toBeLessThanOrEqual(102);
});

test("without events on any day there is no prior, and the threshold is the floor", () => {
  expect(toRulePrior([])).toBeNull();
  expect(toRulePrior([0, 0])).toBeNull();
  const policy = { z: DEFAULT_Z, prior: null };
  expect([...computeThresholds(createHourHistory(), 480_000, policy).threshold]).toEqual([10, 10, 10]);
});

test("the first threshold is that of the documented formula, and a day of history leaves nothing of the prior", () => {
  const totals = [100, 1_000, 10_000];
  const prior = toRulePrior(totals);
  const thresholds = computeThresholds(createHourHistory(), 480_000, { z: 3, prior });
  for (const [i, w] of WINDOWS.entries()) {
    const logs = totals.map((total) => {
      const m = (total / 24) * (w / 60);
      return Math.log(1 + m + 2 * Math.sqrt(m));
    });
    const level = logs.reduce((a, b) => a + b, 0) / 3;
    const variance = logs.reduce((a, b) => a + (b - level) ** 2, 0) / 3;
    const deviation = Math.sqrt((12 * 0.36 + 12 * (0.36 + variance)) / 24);
    expect(thresholds.deviation[i]).toBeCloseTo(deviation, 9);
    const expected = Math.max(10, Math.exp(level + 3 * deviation) - 1);
    expect((thresholds.threshold[i] ?? 0) / expected).toBeCloseTo(1, 9);
    expect(thresholds.usual[i]).toBeCloseTo((3_700 / 24) * (w / 60), 9);
  }

  const history = createHourHistory();
  for (let hour = 480_000; hour < 480_026; hour += 1) addMinute(history, hour, 30, [9, 20, 30]);
  expect(computeThresholds(history, 480_026, { z: 3, prior })).toEqual(
    computeThresholds(history, 480_026, { z: 3 }),
  );
});

test("days of either spelling are read, what is no day is passed over, and of two the greater counts", () => {
  const counters = (total: number) => ({
    totalTriggers: total,
    blockedRequests: total,
    loggedRequests: 0,
    challengedRequests: 0,
  });
  const overviewPastTwentyEightDays = {
    "20-11-2026": counters(5),
    "2026-11-20T00:00:00Z": counters(7),
    "2026-11-19": counters(3),
    "31-02-2026": counters(9),
    total: counters(9),
  };
  const days = toDailyCounts({ data: { ...counters(15), overviewPastTwentyEightDays } });
  expect(days.map(({ day, total }) => [day, total])).toEqual([
    ["2026-11-20", 7],
    ["2026-11-19", 3],
  ]);
  expect(toDailyCounts({ data: { ...counters(0), overviewPastTwentyEightDays: {} } })).toEqual([]);
});
