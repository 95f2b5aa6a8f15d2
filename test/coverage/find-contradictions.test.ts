import { expect, test } from "vitest";
import { findContradictions, findSilence } from "../../src/coverage/find-contradictions.ts";
import { HOUR_MS, MINUTE_MS } from "../../src/lib/units.ts";
import type { CoveredHour } from "../../src/model/covered-hour.ts";
import type { Look } from "../../src/model/look.ts";
import { openHour } from "./some-hours.ts";

const START = Date.UTC(2026, 10, 20, 10);
const look = (changed: Partial<Look>): Look => ({
  at: START + 2 * HOUR_MS,
  since: START + 2 * HOUR_MS,
  pages: 1,
  count: 9,
  ids: "nine",
  peak: 9,
  ...changed,
});
const hour = (looks: CoveredHour["looks"], changed: Partial<CoveredHour> = {}) =>
  openHour(START, { storedCount: 9, looks, ...changed });

test.each(["list", "search", "counts"] as const)(
  "a %s look below an earlier one is a contradiction",
  (route) => {
    const found = findContradictions(route, [hour({ [route]: look({ count: 3, ids: "three" }) })]);
    expect(found).toEqual([
      {
        startsAt: START,
        reason: expect.stringMatching(/ 3 of 9 events of the hour from 2026-11-20 10:00 UTC\.$/),
      },
    ]);
    expect(findContradictions(route, [hour({ [route]: look({}) })])).toEqual([]);
    expect(findContradictions(route, [hour({ [route]: look({ count: 3 }) }, { state: "gap" })])).toEqual([]);
  },
);

test("a search without events that searches have shown is a contradiction, one without new events of the list is not", () => {
  const lacks = { count: 2, ids: ["x", "y"], rules: { "1": 2 } };
  const seen = (known: number) => look({ count: 7, peak: 7, lacks: { ...lacks, known } });
  expect(findContradictions("search", [hour({ search: seen(1) })])).toHaveLength(1);
  expect(findContradictions("search", [hour({ search: seen(0) })])).toEqual([]);
});

test("events that the list proves and that search and counts lack alike are explained after ten minutes", () => {
  const lacks = { count: 2, known: 2, ids: ["x", "y"], rules: { "1": 2 } };
  const since = START + 2 * HOUR_MS;
  const search = (agreedMs: number) => look({ count: 7, lacks, since, at: since + agreedMs });
  const counts = look({ count: 7, lacks: { ...lacks, ids: [] } });
  const looks = (agreedMs: number) => ({ list: look({}), search: search(agreedMs), counts });
  for (const route of ["search", "counts"] as const) {
    expect(findContradictions(route, [hour(looks(10 * MINUTE_MS - 1))])).toHaveLength(1);
    expect(findContradictions(route, [hour(looks(10 * MINUTE_MS))])).toEqual([]);
    const short = { ...looks(10 * MINUTE_MS), list: look({ count: 8 }) };
    expect(findContradictions(route, [hour(short)])).toHaveLength(1);
  }
  const other = {
    ...looks(10 * MINUTE_MS),
    counts: look({ count: 7, lacks: { ...lacks, rules: { "2": 2 } } }),
  };
  expect(findContradictions("counts", [hour(other)])).toHaveLength(1);
});

test("a list that always shows the same less is explained after an hour, where the search shows what is stored", () => {
  const since = START + 2 * HOUR_MS;
  const list = (agreedMs: number) => look({ count: 8, ids: "eight", since, at: since + agreedMs });
  expect(findContradictions("list", [hour({ list: list(HOUR_MS - 1), search: look({}) })])).toHaveLength(1);
  expect(findContradictions("list", [hour({ list: list(HOUR_MS), search: look({}) })])).toEqual([]);
  expect(
    findContradictions("list", [hour({ list: list(HOUR_MS), search: look({ count: 8 }) })]),
  ).toHaveLength(1);
});

test("a route's earlier surplus is dropped after an hour in which it agrees with the stored events", () => {
  const since = START + 2 * HOUR_MS;
  const lower = (agreedMs: number) => look({ count: 5, ids: "five", since, at: since + agreedMs });
  for (const route of ["list", "search", "counts"] as const) {
    const found = (agreedMs: number, storedCount = 5) =>
      findContradictions(route, [hour({ [route]: lower(agreedMs) }, { storedCount })]);
    expect(found(HOUR_MS - 1)).toHaveLength(1);
    expect(found(HOUR_MS)).toEqual([]);
    expect(found(HOUR_MS, 6)).toHaveLength(1);
  }
});

test("a look of 0 is never explained by looks that agree", () => {
  const since = START;
  const none = { count: 0, ids: "none", since, at: START + 9 * HOUR_MS };
  for (const route of ["list", "search", "counts"] as const)
    expect(
      findContradictions(route, [hour({ search: look({}), list: look({}), [route]: look(none) })]),
    ).toHaveLength(1);
});

test("an hour without any event is a contradiction behind 24 busy hours, until looks an hour apart agree on it", () => {
  const busy = Array.from({ length: 24 }, (_, index) =>
    openHour(START + index * HOUR_MS, { storedCount: 10 }),
  );
  const empty = (agreedMs: number, storedCount = 0) => {
    const seen = look({
      count: storedCount,
      peak: storedCount,
      at: START + 27 * HOUR_MS + agreedMs,
      since: START + 27 * HOUR_MS,
    });
    return openHour(START + 24 * HOUR_MS, { storedCount, looks: { search: seen, counts: seen } });
  };
  expect(findSilence([...busy, empty(0)])?.startsAt).toBe(START + 24 * HOUR_MS);
  expect(findSilence([...busy, empty(HOUR_MS)])).toBeNull();
  expect(findSilence([...busy, empty(0, 1)])).toBeNull();
  expect(findSilence([...busy.slice(1), empty(0)])).toBeNull();
  expect(
    findSilence([...busy.with(7, openHour(START + 7 * HOUR_MS, { storedCount: 9 })), empty(0)]),
  ).toBeNull();
});
