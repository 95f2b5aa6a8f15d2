import fc from "fast-check";
import { expect, test } from "vitest";
import { findFirings, type MinuteCount } from "#detection/rules/find-firings.ts";
import { holds } from "#model/custom-condition.ts";

const SPAN = { from: 1_000, to: 1_060 };
const minuteCounts = fc
  .array(
    fc.tuple(
      fc.integer({ min: 990, max: 1_070 }),
      fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 4 }),
    ),
    {
      maxLength: 25,
    },
  )
  .map((drawn) =>
    [...new Map(drawn)].map(
      ([minute, values]): MinuteCount => ({ minute, count: values.length, values: [...new Set(values)] }),
    ),
  );
const conditions = fc.record({
  moreThan: fc.option(fc.integer({ min: 0, max: 6 })),
  isDistinct: fc.boolean(),
  withinMinutes: fc.integer({ min: 1, max: 70 }),
});

test("a condition holds in exactly the minutes whose window, counted by itself, lets it hold", () => {
  fc.assert(
    fc.property(minuteCounts, conditions, (minutes, { moreThan, isDistinct, withinMinutes }) => {
      const condition = {
        moreThan,
        withinMinutes,
        distinct: isDistinct && moreThan !== null ? ("address" as const) : null,
      };
      const wanted: number[] = [];
      for (let at = SPAN.from; at < SPAN.to; at += 1) {
        const inside = minutes.filter(({ minute }) => minute <= at && minute > at - withinMinutes);
        const values = new Set(inside.flatMap((one) => one.values ?? []));
        const count =
          condition.distinct === null ? inside.reduce((sum, one) => sum + one.count, 0) : values.size;
        const isKnown = moreThan !== null || at - withinMinutes + 1 >= SPAN.from;
        if (isKnown && holds(condition, count)) wanted.push(at);
      }
      const found = findFirings(minutes, condition, SPAN);
      const held = found.flatMap(({ from, to }) =>
        Array.from({ length: (to ?? SPAN.to) - from }, (_, index) => from + index),
      );
      expect(held).toEqual(wanted);
      // An end is the beginning of a time in which it does not hold.
      for (const [index, { to }] of found.entries())
        expect(to === null || to < (found[index + 1]?.from ?? SPAN.to)).toBe(true);
    }),
    { numRuns: 400 },
  );
});

test("a firing has its largest count, its last one, and the last minute with something to count", () => {
  const minutes = [1_010, 1_011, 1_012, 1_030].map((minute) => ({ minute, count: 2 }));
  const condition = { moreThan: 3, withinMinutes: 5, distinct: null };
  expect(findFirings(minutes, condition, SPAN)).toEqual([
    { from: 1_011, to: 1_016, lastActive: 1_012, peak: 6, count: 2 },
  ]);
  const absent = { moreThan: null, withinMinutes: 20, distinct: null };
  expect(findFirings(minutes.slice(0, 3), absent, SPAN)).toEqual([
    { from: 1_032, to: null, lastActive: 1_032, peak: 0, count: 0 },
  ]);
});
