import fc from "fast-check";
import { expect, test } from "vitest";
import { judgeMinute } from "#detection/rules/episode.ts";
import { WINDOWS } from "#model/kinds.ts";
import { drawCounts, shapes } from "./support/histories.ts";
import { type NaiveThreshold, naiveSum, naiveThreshold } from "./support/log-peak-guard.ts";
import { scanHistory } from "./support/scan-history.ts";

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
    // The naive thresholds of an hour are the same in each of its minutes, and slow.
    const naiveOfHour = new Map<number, readonly NaiveThreshold[]>();
    const naiveAt = (hour: number) => {
      const known = naiveOfHour.get(hour);
      if (known !== undefined) return known;
      const made = WINDOWS.map((w) => naiveThreshold(counts, shape.firstMinute, hour, w, z, unknown));
      naiveOfHour.set(hour, made);
      return made;
    };
    let compared = 0;
    scanHistory(counts, shape.firstMinute, { z, isUnknownHour }, (minute, { sums, thresholds }) => {
      const hour = Math.floor(minute / 60);
      if (!looked.has(hour) || minute % 60 > 2) return;
      const found = judgeMinute(sums, thresholds);
      const expected = naiveAt(hour).map((at, index) => {
        const count = naiveSum(counts, shape.firstMinute, minute, WINDOWS[index] ?? 0);
        return { count, ...at, score: (Math.log(1 + count) - at.mu - at.delta) / at.s };
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

test("without a history the floor of ten events is the threshold", () => {
  const found: unknown[] = [];
  scanHistory([9, 1], 20_000_000, { z: 3.5 }, (_minute, { sums, thresholds }) => {
    found.push(judgeMinute(sums, thresholds));
  });
  expect(found).toEqual([null, expect.objectContaining({ count: 10, threshold: 10 })]);
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
