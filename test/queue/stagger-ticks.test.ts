import { expect, test } from "vitest";
import { staggerTicks } from "#adapters/queue/stagger-ticks.ts";

function offsets(count: number, everyMs: number): number[] {
  return Array.from({ length: count }, (_, index) => staggerTicks(index, count, everyMs));
}

test("the ticks of a few zones fall due together", () => {
  expect(new Set(offsets(8, 30_000))).toEqual(new Set([0]));
});

test("the ticks of many zones are spread over the period, at whole seconds", () => {
  const all = offsets(200, 34_000);
  expect(Math.max(...all)).toBe(32_000);
  expect(all.every((offset) => offset % 1_000 === 0)).toBe(true);
  expect(all).toEqual(all.toSorted((a, b) => a - b));
  expect(Math.max(...[...Map.groupBy(all, (offset) => offset).values()].map(({ length }) => length))).toBe(8);
});
