import fc from "fast-check";
import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { isBackfilled, planSearch, type SearchedHour } from "#proof/rules/plan-search.ts";

const KEPT_MS = 72 * HOUR_MS;
const OPTIONS = { freshMs: 15_000, overlapMs: 3 * MINUTE_MS };
const NOW = Date.UTC(2026, 10, 20, 15, 30);

/** A clock value in 2026, often exactly on an hour or a millisecond beside it. */
const aNow = fc
  .tuple(fc.integer({ min: 0, max: 8_000 }), fc.oneof(fc.integer({ min: -1, max: 1 }), fc.nat(HOUR_MS - 1)))
  .map(([hours, ms]) => Date.UTC(2026, 0, 10) + hours * HOUR_MS + ms);

/** Possible records: hours not begun, begun, searched to their end, and rows that only list events made. */
function someHours(now: number) {
  const first = startOfHour(now) - 75 * HOUR_MS;
  const hour = fc.option(fc.option(fc.nat(HOUR_MS), { nil: null }), { nil: undefined });
  return fc.array(hour, { minLength: 76, maxLength: 76 }).map((offsets) =>
    offsets.flatMap((offset, index): SearchedHour[] => {
      const startsAt = first + index * HOUR_MS;
      if (offset === undefined) return [];
      return [{ startsAt, searchedThrough: offset === null ? null : Math.min(startsAt + offset, now) }];
    }),
  );
}

/** A store that remembers as the database does: an hour's cursor never moves back. */
function createHours(initial: readonly SearchedHour[] = []) {
  const through = new Map(initial.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
  return {
    list: () =>
      [...through]
        .map(([startsAt, searchedThrough]) => ({ startsAt, searchedThrough }))
        .sort((a, b) => a.startsAt - b.startsAt),
    advance: (hour: number, to: number) => void through.set(hour, Math.max(through.get(hour) ?? 0, to)),
  };
}

test("every span lies within what the platform keeps, ends by now and is not empty", () => {
  const given = aNow.chain((now) => fc.tuple(fc.constant(now), someHours(now)));
  fc.assert(
    fc.property(given, ([now, hours]) => {
      const span = planSearch(now, hours, OPTIONS);
      if (span === null) return;
      expect(span.from).toBeGreaterThan(now - KEPT_MS);
      expect(span.to).toBeLessThanOrEqual(now);
      expect(span.to).toBeGreaterThan(span.from);
      expect(span.to).toBeLessThanOrEqual(span.hour + HOUR_MS);
      expect(span.to).toBeGreaterThan(span.hour);
    }),
    { numRuns: 500 },
  );
});

test("from any state the plan ends, and no millisecond of the horizon was left out", () => {
  const given = aNow.chain((now) => fc.tuple(fc.constant(now), someHours(now)));
  fc.assert(
    fc.property(given, ([now, initial]) => {
      const hours = createHours(initial);
      const spans = [];
      for (let span = planSearch(now, hours.list(), OPTIONS); span !== null; ) {
        spans.push(span);
        expect(spans.length).toBeLessThanOrEqual(75);
        hours.advance(span.hour, span.to);
        span = planSearch(now, hours.list(), OPTIONS);
      }
      const before = new Map(initial.map(({ startsAt, searchedThrough }) => [startsAt, searchedThrough]));
      for (let hour = startOfHour(horizonAt(now)); hour < startOfHour(now); hour += HOUR_MS) {
        const known = before.get(hour) ?? hour;
        const missing = { from: Math.max(known, horizonAt(now)), to: hour + HOUR_MS };
        if (missing.from >= missing.to) continue;
        const covering = spans.filter(({ from, to }) => from <= missing.from && to >= missing.to);
        expect(covering.length, `${new Date(hour).toISOString()} is covered`).toBeGreaterThan(0);
      }
      expect(isBackfilled(now, hours.list())).toBe(true);
      const live = hours.list().find(({ startsAt }) => startsAt === startOfHour(now))?.searchedThrough;
      expect(now - (live ?? startOfHour(now))).toBeLessThan(OPTIONS.freshMs);
    }),
    { numRuns: 300 },
  );
});

test("an event that appears within the overlap of its time is read, whenever the polls come", () => {
  const START = Date.UTC(2026, 10, 20, 15);
  const polls = fc.array(fc.oneof(fc.integer({ min: 15_000, max: 10 * MINUTE_MS }), fc.constant(30_000)), {
    minLength: 3,
    maxLength: 40,
  });
  const late = fc.integer({ min: 0, max: OPTIONS.overlapMs - 1 });
  fc.assert(
    fc.property(polls, fc.nat(2 * HOUR_MS), late, (gaps, offset, lateness) => {
      const occurredAt = START + offset;
      const appearsAt = occurredAt + lateness;
      const hours = createHours();
      let isRead = false;
      let now = START;
      for (const gap of [...gaps, HOUR_MS - 1, 30_000, 2 * HOUR_MS, 5 * MINUTE_MS]) {
        now += gap;
        for (let span = planSearch(now, hours.list(), OPTIONS); span !== null; ) {
          if (appearsAt <= now && occurredAt >= span.from && occurredAt < span.to) isRead = true;
          hours.advance(span.hour, span.to);
          span = planSearch(now, hours.list(), OPTIONS);
        }
      }
      expect(isRead).toBe(true);
    }),
    { numRuns: 1_000, examples: [[[HOUR_MS, 30_000, 30_000], HOUR_MS - 175_000, 179_000]] },
  );
});

test("the newest minutes come first, then the hour that has just ended, then what expires first", () => {
  const hours = createHours();
  const order: number[] = [];
  for (let span = planSearch(NOW, hours.list(), OPTIONS); span !== null; ) {
    order.push(span.hour);
    hours.advance(span.hour, span.to);
    span = planSearch(NOW, hours.list(), OPTIONS);
  }
  const oldest = startOfHour(horizonAt(NOW));
  expect(order).toEqual([
    startOfHour(NOW),
    ...Array.from({ length: order.length - 1 }, (_, index) => oldest + index * HOUR_MS),
  ]);
  expect(order.at(-1)).toBe(startOfHour(NOW) - HOUR_MS);
  const justEnded = [{ startsAt: startOfHour(NOW) - HOUR_MS, searchedThrough: startOfHour(NOW) - 1_000 }];
  const live = { startsAt: startOfHour(NOW), searchedThrough: NOW };
  expect(planSearch(NOW, [...justEnded, live], OPTIONS)).toEqual({
    hour: startOfHour(NOW) - HOUR_MS,
    from: startOfHour(NOW) - 1_000 - OPTIONS.overlapMs,
    to: startOfHour(NOW),
    isFirst: false,
  });
});

test("the live edge interrupts a backfill as soon as it is stale", () => {
  const live = { startsAt: startOfHour(NOW), searchedThrough: NOW - OPTIONS.freshMs };
  expect(planSearch(NOW, [live], OPTIONS)?.hour).toBe(startOfHour(NOW));
  expect(planSearch(NOW - 1, [live], OPTIONS)?.hour).toBe(startOfHour(horizonAt(NOW)));
});

test("a clock that was set back plans nothing that ends before it begins", () => {
  const live = { startsAt: startOfHour(NOW), searchedThrough: NOW };
  const done = Array.from({ length: 73 }, (_, index) => startOfHour(NOW) - (index + 1) * HOUR_MS).map(
    (startsAt) => ({ startsAt, searchedThrough: startsAt + HOUR_MS }),
  );
  expect(planSearch(NOW - 10 * MINUTE_MS, [...done, live], OPTIONS)).toBeNull();
});

test("a day is backfilled when its ended hours are, whatever the hours around it are", () => {
  const day = Date.UTC(2026, 10, 19);
  const range = { fromMs: day, toMs: day + 24 * HOUR_MS };
  const all = Array.from({ length: 24 }, (_, index) => ({
    startsAt: day + index * HOUR_MS,
    searchedThrough: day + (index + 1) * HOUR_MS,
  }));
  expect(isBackfilled(NOW, all, range)).toBe(true);
  expect(isBackfilled(NOW, all)).toBe(false);
  expect(isBackfilled(NOW, all.slice(1), range)).toBe(false);
  expect(isBackfilled(NOW, [...all.slice(1), { startsAt: day, searchedThrough: null }], range)).toBe(false);
  expect(
    isBackfilled(NOW, [...all.slice(1), { startsAt: day, searchedThrough: day + HOUR_MS - 1 }], range),
  ).toBe(false);
});

test("the first search of a period reads the whole overlap, a further one only its newest part", () => {
  const at = startOfHour(NOW);
  const hours = [{ startsAt: at, searchedThrough: NOW }];
  const options = { freshMs: 5_000, overlapMs: 3 * MINUTE_MS, periodMs: 30_000, keptMs: KEPT_MS };
  const overlapAfter = (seconds: number) => {
    const span = planSearch(NOW + seconds * 1_000, hours, options);
    return span === null ? null : NOW - span.from;
  };
  expect([overlapAfter(10), overlapAfter(20), overlapAfter(30)]).toEqual([30_000, 30_000, 3 * MINUTE_MS]);
});
