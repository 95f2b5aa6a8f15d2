import fc from "fast-check";
import { expect, test } from "vitest";
import { suggestZ, toAttackHours } from "#detection/rules/backtest/backtest.ts";
import { createSeriesWatch, passMinutes, takeMinute } from "#detection/rules/series-watch.ts";
import { drawCounts, shapes } from "./support/histories.ts";
import { naiveSum } from "./support/log-peak-guard.ts";
import { findEpisodes } from "./support/scan-history.ts";

const FIRST = 20_000 * 1_440;
const DAY = 1_440;

test("with marks and floors, fed minute by minute the detector finds what a scan of the whole history finds", () => {
  let marked = 0;
  const property = fc.property(shapes, fc.constantFrom(3, 10, 40), fc.integer(), (shape, floor, seed) => {
    const counts = drawCounts(shape);
    const seen = findEpisodes(counts, shape.firstMinute, { z: 3, floor });
    const attacks = seen.filter((_, i) => (seed >> (i % 30)) % 2 === 0);
    const left = toAttackHours(attacks);
    const policy = { z: 3, floor, isUnknownHour: (hour: number) => left.has(hour) };
    const found: unknown[] = [];
    const watch = createSeriesWatch();
    for (const [i, count] of counts.entries())
      if (count > 0) takeMinute(watch, shape.firstMinute + i, count, policy, (one) => void found.push(one));
    passMinutes(watch, shape.firstMinute + counts.length, policy, (one) => void found.push(one));
    if (watch.episode !== null) found.push({ ...watch.episode, closedAt: null });
    expect(found).toEqual(findEpisodes(counts, shape.firstMinute, policy));
    marked += attacks.length;
  });
  fc.assert(property, { numRuns: 100 });
  expect(marked).toBeGreaterThan(50);
});

test("every hour in which a window counts a minute of the attack leaves the history, and no hour beyond", () => {
  const property = fc.property(
    fc.integer({ min: 0, max: 300 }),
    fc.integer({ min: 0, max: 400 }),
    fc.constantFrom(3, 15, 60),
    (at, lasts, windowMinutes) => {
      const openedAt = FIRST + at + 1;
      const hours = toAttackHours([{ openedAt, lastActiveAt: openedAt + lasts, windowMinutes }]);
      const counts = Array.from({ length: 2 * DAY }, (_, i) => (i >= at && i <= at + lasts ? 1 : 0));
      const counting = counts.flatMap((_, i) =>
        naiveSum(counts, FIRST, FIRST + i, 60) > 0 ? [FIRST + i] : [],
      );
      expect(counting.every((minute) => hours.has(Math.floor(minute / 60)))).toBe(true);
      const [first, last] = [Math.min(...hours), Math.max(...hours)];
      expect(first).toBe(Math.floor((FIRST + at + 1 - windowMinutes) / 60));
      expect(last).toBe(Math.floor((FIRST + at + lasts + 59) / 60));
      expect(hours.size).toBe(last - first + 1);
    },
  );
  fc.assert(property, { numRuns: 60 });
});

test("the same burst on a silent rule is seen again where the first was confirmed as an attack, else not", () => {
  const counts: number[] = Array.from({ length: 4 * DAY }, (_, i) => (i % 500 === 0 ? 1 : 0));
  for (const at of [2 * DAY + 100, 3 * DAY + 700]) for (let i = 0; i < 3; i += 1) counts[at + i] = 20;
  const seen = findEpisodes(counts, FIRST, { z: 3.5 });
  expect(seen).toHaveLength(1);
  const left = toAttackHours(seen);
  const again = findEpisodes(counts, FIRST, { z: 3.5, isUnknownHour: (hour) => left.has(hour) });
  expect(again.map(({ openedAt }) => openedAt - FIRST)).toEqual([2 * DAY + 101, 3 * DAY + 701]);
});

test("a z is suggested from the third mark on, just above the scores of half of the noise", () => {
  expect(suggestZ([4, 5], 3.5)).toBeNull();
  expect(suggestZ([4, 5.2, 6.5], 3.5)).toEqual({ z: 5.5, silenced: 2 });
  expect(suggestZ([4, 5, 9, 9.2], 3.5)).toEqual({ z: 5.5, silenced: 2 });
  expect(suggestZ([3.5, 3.6, 3.6], 3.5)).toEqual({ z: 4, silenced: 3 });
  // Marked when z was lower: one step more than what is set now.
  expect(suggestZ([3.5, 3.6, 3.6], 5)).toEqual({ z: 5.5, silenced: 3 });
  expect(suggestZ([12, 15, 20], 3.5)).toBeNull();
});
