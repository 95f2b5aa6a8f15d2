import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { CoveredHour, Look } from "#model/covered-hour.ts";
import { horizonAt } from "#model/horizon.ts";
import { isClosingSearch, planClosingSearch } from "#proof/rules/plan-comparison.ts";
import { anHour, NOW, openHour, POLICY, SETTLE_MS } from "./some-hours.ts";

const START = Date.UTC(2026, 10, 20, 10);
const searched = (startsAt: number) => openHour(startsAt, { searchedThrough: startsAt + HOUR_MS });

const look = (changed: Partial<Look> = {}): Look => ({
  at: NOW - 1,
  since: NOW - 1,
  pages: 1,
  count: 3,
  ids: "three",
  ...changed,
});
const looked = (startsAt: number, search: Look, changed: Partial<CoveredHour> = {}) => ({
  ...searched(startsAt),
  storedCount: 3,
  looks: { search },
  ...changed,
});
const isDue = (now: number, hour: CoveredHour) => planClosingSearch(now, [hour], POLICY) !== null;

test("a settled hour is searched once more from end to end, the one that expires first in front", () => {
  const hours = [looked(START, look()), searched(START + HOUR_MS), searched(START + 2 * HOUR_MS)];
  const [hour, to] = [START + HOUR_MS, START + 2 * HOUR_MS];
  expect(planClosingSearch(NOW, hours, POLICY)).toEqual({ hour, from: hour, to, isFirst: false });
  expect(planClosingSearch(to + SETTLE_MS - 1, hours.slice(1), POLICY)).toBeNull();
});

test("an hour that gained an event since its search is searched again, after five minutes while the list still serves the day", () => {
  const startsAt = START - 3 * DAY_MS + 8 * HOUR_MS;
  const at = NOW - 2_000;
  expect(isDue(NOW, looked(startsAt, look({ at }), { lastNewAt: at }))).toBe(true);
  expect(isDue(NOW, looked(startsAt, look({ at }), { lastNewAt: at - 1 }))).toBe(false);
  expect(isDue(at + 5 * 60_000 - 1, looked(START, look({ at }), { lastNewAt: at }))).toBe(false);
  expect(isDue(at + 5 * 60_000, looked(START, look({ at }), { lastNewAt: at }))).toBe(true);
});

test("an hour that is to be proven anew in ten minutes is searched at once and then, and not in between", () => {
  const proofFrom = NOW + 10 * 60_000;
  expect(isDue(NOW, looked(START, look(), { proofFrom }))).toBe(true);
  const again = looked(START, look({ at: NOW }), { proofFrom });
  expect(isDue(proofFrom - 1, again)).toBe(false);
  expect(isDue(proofFrom, again)).toBe(true);
  expect(isDue(proofFrom, looked(START, look({ at: proofFrom }), { proofFrom }))).toBe(false);
});

test("a search that did not show what is stored is repeated after five minutes, one that lacks events after ten, and then as long after as its looks have agreed, up to an hour", () => {
  const hour = (search: Look) => looked(START, search, { storedCount: 5 });
  expect(isDue(NOW + 5 * 60_000 - 2, hour(look()))).toBe(false);
  expect(isDue(NOW + 5 * 60_000, hour(look()))).toBe(true);
  const lacks = { count: 2, ids: ["x", "y"], digest: "0000000000000003", rules: { "1": 2 } };
  expect(isDue(NOW + 10 * 60_000 - 2, hour(look({ lacks })))).toBe(false);
  expect(isDue(NOW + 10 * 60_000, hour(look({ lacks })))).toBe(true);
  for (const [agreedMinutes, nextMinutes] of [
    [11, 11],
    [30, 30],
    [40, 20],
    [90, 60],
  ] as const) {
    const agreed = hour(look({ lacks, at: NOW, since: NOW - agreedMinutes * 60_000 }));
    expect([agreedMinutes, isDue(NOW + nextMinutes * 60_000 - 1, agreed)]).toEqual([agreedMinutes, false]);
    expect([agreedMinutes, isDue(NOW + nextMinutes * 60_000, agreed)]).toEqual([agreedMinutes, true]);
  }
});

test("an hour of which the counts lack events is searched once more since the counts changed, and then every hour", () => {
  const lacks = { count: 1, ids: [], rules: { "1": 1 } };
  const hour = (search: Look, counts: Look) =>
    looked(START, search, { surplusCells: 1, looks: { search, counts: { ...counts, count: 2, lacks } } });
  expect(isDue(NOW, hour(look(), look({ at: NOW, since: NOW })))).toBe(true);
  expect(isDue(NOW + HOUR_MS - 2, hour(look(), look({ at: NOW })))).toBe(false);
  expect(isDue(NOW + HOUR_MS, hour(look(), look({ at: NOW })))).toBe(true);
});

test("an hour without events is searched twice, an hour apart", () => {
  const none = (at: number, since: number) =>
    looked(START, look({ at, since, count: 0 }), { storedCount: 0 });
  expect(isDue(NOW + HOUR_MS - 1, none(NOW, NOW))).toBe(false);
  expect(isDue(NOW + HOUR_MS, none(NOW, NOW))).toBe(true);
  expect(isDue(NOW + 9 * HOUR_MS, none(NOW + HOUR_MS, NOW))).toBe(false);
});

test("a sealed hour is searched again an hour after its search, at an age of six hours, and seven hours before it expires", () => {
  const sealed = (search: Look) => looked(START, search, { state: "sealed" });
  const [once, twice] = [look({ at: START + 2 * HOUR_MS, since: START + 2 * HOUR_MS }), { since: START }];
  expect(isDue(START + 3 * HOUR_MS - 1, sealed(once))).toBe(false);
  expect(isDue(START + 3 * HOUR_MS, sealed(once))).toBe(true);
  for (const age of [6, 65]) {
    const at = START + age * HOUR_MS;
    expect(isDue(at - 1, sealed(look({ ...twice, at: at - 2 * HOUR_MS })))).toBe(false);
    expect(isDue(at, sealed(look({ ...twice, at: at - 2 * HOUR_MS })))).toBe(true);
    expect(isDue(at + HOUR_MS, sealed(look({ ...twice, at })))).toBe(false);
  }
});

test("an hour with a contested value is searched again ten minutes after its search, sealed or not", () => {
  const contested = { ...POLICY, contested: new Map([[START, NOW]]) };
  for (const state of ["open", "sealed"] as const) {
    const hour = looked(START, look({ at: NOW, since: START }), { state });
    expect(planClosingSearch(NOW + 10 * 60_000 - 1, [hour], contested)).toBeNull();
    expect(planClosingSearch(NOW + 10 * 60_000, [hour], contested)).not.toBeNull();
  }
});

test("looks from before an hour has to be proven anew do not count", () => {
  expect(isDue(NOW, looked(START, look(), { proofFrom: NOW }))).toBe(true);
  expect(isDue(NOW, looked(START, look(), { proofFrom: NOW - 1 }))).toBe(false);
});

test("whatever is recorded, what is planned is a settled, whole hour that is no gap, and counts as its closing search", () => {
  const hours = fc.uniqueArray(anHour(), { selector: ({ startsAt }) => startsAt, maxLength: 76 });
  fc.assert(
    fc.property(hours, (given) => {
      const span = planClosingSearch(NOW, given, POLICY);
      if (span === null) return;
      expect(given.find(({ startsAt }) => startsAt === span.hour)?.state).not.toBe("gap");
      expect(span.from).toBeGreaterThanOrEqual(horizonAt(NOW));
      expect(isClosingSearch(span, NOW, SETTLE_MS)).toBe(true);
    }),
  );
});

test.each([
  ["that began too early", { from: START, to: START + HOUR_MS }, START + HOUR_MS + SETTLE_MS - 1],
  ["without the first moment", { from: START + 1, to: START + HOUR_MS }, NOW],
  ["without the last moment", { from: START, to: START + HOUR_MS - 1 }, NOW],
])("a search %s closes nothing", (_what, span, startedAt) => {
  expect(isClosingSearch({ hour: START, ...span }, startedAt, SETTLE_MS)).toBe(false);
});
