import fc from "fast-check";
import { expect, test } from "vitest";
import { judgeMinute } from "../../src/spike/judge-minute.ts";
import { WINDOWS } from "../../src/spike/policy.ts";
import { scanHistory } from "../../src/spike/scan-history.ts";
import { amendMinute, closeMinute, createSeries, retestMinute } from "../../src/spike/series.ts";
import { drawCounts, shapes } from "./support/histories.ts";
import { naiveSum, naiveThreshold } from "./support/log-peak-guard.ts";

const zs = fc.constantFrom(3, 3.5, 4.5);
const unknownOf = (share: number) => (hour: number) => (hour * 2_654_435_761) % 1_000 < share * 1_000;

test("thresholds, scores and baselines are those of the published formulas", () => {
  const property = fc.property(shapes, zs, fc.constantFrom(0, 0.1), (shape, z, unknownShare) => {
    const counts = drawCounts(shape);
    const isUnknownHour = unknownOf(unknownShare);
    const lastHour = Math.floor((shape.firstMinute + counts.length - 1) / 60);
    const looked = new Set([lastHour, lastHour - 1, lastHour - 30]);
    const unknown = new Set(
      Array.from({ length: 260 }, (_, i) => lastHour - i).filter((hour) => isUnknownHour(hour)),
    );
    let compared = 0;
    scanHistory(counts, shape.firstMinute, { z, isUnknownHour }, (minute, { sums, thresholds }) => {
      const hour = Math.floor(minute / 60);
      if (!looked.has(hour) || minute % 60 > 2) return;
      const found = judgeMinute(sums, thresholds);
      const expected = WINDOWS.map((w) => {
        const at = naiveThreshold(counts, shape.firstMinute, hour, w, z, unknown);
        const count = naiveSum(counts, shape.firstMinute, minute, w);
        return { w, count, ...at, score: (Math.log(1 + count) - at.mu - at.delta) / at.s };
      });
      for (const [i, at] of expected.entries()) {
        expect(sums[i]).toBe(at.count);
        expect((thresholds.threshold[i] ?? 0) / at.threshold).toBeCloseTo(1, 9);
        expect(thresholds.level[i]).toBeCloseTo(at.mu + at.delta, 9);
        expect(thresholds.deviation[i]).toBeCloseTo(at.s, 9);
        expect(((thresholds.usual[i] ?? 0) + 1) / (at.usual + 1)).toBeCloseTo(1, 9);
      }
      const spiking = expected.filter(({ count, threshold }) => count >= threshold);
      expect(found === null).toBe(spiking.length === 0);
      const best = spiking.toSorted((one, other) => other.score - one.score)[0];
      expect(found?.score ?? 0).toBeCloseTo(best?.score ?? 0, 9);
      compared += 1;
    });
    expect(compared > 0 || counts.length < 60).toBe(true);
  });
  fc.assert(property, { numRuns: 60 });
});

test("fed minute by minute, the detector says what a scan of the whole history says", () => {
  const property = fc.property(shapes, zs, fc.boolean(), (shape, z, skipsEmpty) => {
    const counts = drawCounts(shape);
    const policy = { z, isUnknownHour: unknownOf(0.05) };
    const series = createSeries();
    scanHistory(counts, shape.firstMinute, policy, (minute, { sums, thresholds }) => {
      const count = counts[minute - shape.firstMinute] ?? 0;
      if (skipsEmpty && count === 0 && minute > shape.firstMinute) return;
      const found = closeMinute(series, minute, count, policy);
      const expected = judgeMinute(sums, thresholds);
      expect(found).toEqual(expected);
    });
  });
  fc.assert(property, { numRuns: 40 });
});

test("events that come up to two hours late leave the same detector as events in time", () => {
  const late = fc.record({ at: fc.nat(600), by: fc.nat(119), count: fc.nat(50) });
  const lateness = fc.uniqueArray(late, { maxLength: 20, selector: ({ at }) => at });
  const property = fc.property(lateness, fc.integer(), (lates, seed) => {
    const shape = { seed, firstMinute: 20_000_000, hours: 14, perMinute: 0.5, daily: false };
    const inTime = drawCounts({ ...shape, burstShare: 0.001, burstFactor: 50, silentShare: 0.3 }).slice(
      0,
      800,
    );
    const early = [...inTime];
    const dueAt = new Map<number, { index: number; count: number }[]>();
    for (const { at, by, count } of lates) {
      early[at] = 0;
      inTime[at] = count;
      const due = Math.min(at + by, inTime.length - 1);
      dueAt.set(due, [...(dueAt.get(due) ?? []), { index: at, count }]);
    }
    const policy = { z: 3.5 };
    const [late, punctual] = [createSeries(), createSeries()];
    for (const [i, count] of inTime.entries()) {
      closeMinute(punctual, shape.firstMinute + i, count, policy);
      closeMinute(late, shape.firstMinute + i, early[i] ?? 0, policy);
      for (const { index, count } of dueAt.get(i) ?? []) amendMinute(late, shape.firstMinute + index, count);
    }
    expect(late.sums).toEqual(punctual.sums);
    expect(late.history).toEqual(punctual.history);
  });
  fc.assert(property, { numRuns: 60 });
});

test("late events make a spike of a minute that was quiet, up to ten minutes back, across the hour", () => {
  const series = createSeries();
  const first = 20_000_040;
  for (let i = 0; i <= 25; i += 1) closeMinute(series, first + i, 0, { z: 3.5 });
  const minute = first + 18;
  expect(retestMinute(series, minute)).toBeNull();

  expect(amendMinute(series, minute, 40)).toBe(true);

  expect(retestMinute(series, minute)).toMatchObject({ count: 40, threshold: 10 });
  expect(retestMinute(series, first + 15)).toBeNull();
  closeMinute(series, first + 400, 0, { z: 3.5 });
  expect(amendMinute(series, minute, 50)).toBe(false);
});

test("without a history the floor of ten events is the threshold", () => {
  const series = createSeries();
  expect(closeMinute(series, 20_000_000, 9, { z: 3.5 })).toBeNull();
  expect(closeMinute(series, 20_000_001, 1, { z: 3.5 })).toMatchObject({ count: 10, threshold: 10 });
});

test("one attack in a quiet week does not hide the next", () => {
  const week = 7 * 1_440;
  const counts: number[] = Array.from({ length: week + 1 }, (_, i) => (i % 300 === 0 ? 1 : 0));
  for (let i = 3_000; i < 3_060; i += 1) counts[i] = 170;
  counts[week] = 250;
  let found = null;
  scanHistory(counts, 20_000_000, { z: 3.5 }, (minute, { sums, thresholds }) => {
    if (minute === 20_000_000 + week) found = judgeMinute(sums, thresholds);
  });
  expect(found).not.toBeNull();
});
