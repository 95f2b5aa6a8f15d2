import fc from "fast-check";
import { expect, test } from "vitest";
import { staggerTicks, takeTurn } from "#store/queue/schedule.ts";

function delays(count: number, untilNextMs: number): number[] {
  return Array.from({ length: count }, (_, index) => staggerTicks(index, count, untilNextMs));
}

test("the jobs of a few zones are enqueued together", () => {
  expect(new Set(delays(8, 30_000))).toEqual(new Set([0]));
});

test("the jobs of many zones are spread over the time until the next run, at whole seconds", () => {
  const all = delays(200, 34_000);
  expect(Math.max(...all)).toBe(32_000);
  expect(all.every((delay) => delay % 1_000 === 0)).toBe(true);
  expect(all).toEqual(all.toSorted((a, b) => a - b));
  expect(Math.max(...[...Map.groupBy(all, (delay) => delay).values()].map(({ length }) => length))).toBe(8);
});

test("with more items than a turn may take, every item comes equally often and none waits long", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 70 }), (count, most) => {
      const items = Array.from({ length: count }, (_, index) => index);
      const turns = Array.from({ length: count }, (_, turn) => takeTurn(items, most, turn + 1));
      const times = items.map((item) => turns.filter((turn) => turn.includes(item)).length);
      expect(new Set(turns.map(({ length }) => length))).toEqual(new Set([Math.min(count, most)]));
      expect(new Set(times)).toEqual(new Set([Math.min(count, most)]));
      const longest = Math.ceil(count / most);
      for (let first = 0; first + longest <= count; first += 1)
        expect(new Set(turns.slice(first, first + longest).flat()).size).toBe(count);
    }),
  );
});
