import { expect, test } from "vitest";
import { viewZone, type ZoneHour } from "#detection/rules/zone-view.ts";
import { HOUR_MS } from "#lib/units.ts";

const NOW_HOUR = 500_000;
const NOW = NOW_HOUR * HOUR_MS + 30 * 60_000 + 20_000;

function searched(hour: number, throughMs = (hour + 1) * HOUR_MS): ZoneHour {
  return { startsAtMs: hour * HOUR_MS, searchedThroughMs: throughMs, state: "open" };
}

/** The hour in progress, searched up to twenty seconds past half, and those of the 72 before that are asked for. */
function zone(isSearched: (age: number) => boolean): ZoneHour[] {
  const past = Array.from({ length: 72 }, (_, i) => NOW_HOUR - 72 + i).filter((hour) =>
    isSearched(NOW_HOUR - hour),
  );
  return [...past.map((hour) => searched(hour)), searched(NOW_HOUR, NOW)];
}

test("a minute is judged once it is over and the search has passed its end", () => {
  const view = viewZone(
    zone(() => true),
    NOW,
  );
  const minute = NOW_HOUR * 60 + 29;
  expect([minute - 60, minute, minute + 1].map(view.isTestable)).toEqual([true, true, false]);

  const atItsEnd = viewZone([], (minute + 1) * 60_000);
  expect([minute, minute + 1].map(atItsEnd.isTestable)).toEqual([true, false]);
  const behind = viewZone([...zone(() => true).slice(0, -1), searched(NOW_HOUR, NOW - 120_000)], NOW);
  expect([minute - 2, minute - 1, minute].map(behind.isTestable)).toEqual([true, false, false]);
});

test("hours that were not searched to their end, and gaps, are unknown", () => {
  const hours = zone((age) => age !== 5);
  hours[10] = { ...searched(NOW_HOUR - 62), state: "gap" };
  hours[11] = searched(NOW_HOUR - 61, (NOW_HOUR - 61) * HOUR_MS + 1);
  const view = viewZone(hours, NOW);
  expect([5, 61, 62, 0].map((age) => view.isUnknownHour(NOW_HOUR - age))).toEqual([true, true, true, true]);
  expect([1, 4, 6, 60, 63].map((age) => view.isUnknownHour(NOW_HOUR - age))).toEqual(Array(5).fill(false));
});

test("a zone waits until a day of its history is in place, or all there will be", () => {
  expect(
    viewZone(
      zone((age) => age > 50),
      NOW,
    ).isReady,
  ).toBe(false);
  expect(
    viewZone(
      zone((age) => age > 40),
      NOW,
    ).isReady,
  ).toBe(true);
  const gaps = Array.from({ length: 72 }, (_, i) => ({
    ...searched(NOW_HOUR - 72 + i),
    state: "gap" as const,
  }));
  expect(viewZone([...gaps, searched(NOW_HOUR, NOW)], NOW).isReady).toBe(true);
});

test("no rule is called new while more than six hours of the history are missing, unless only seals are known", () => {
  const canShow = (missing: number) =>
    viewZone(
      zone((age) => age > missing + 1 || age === 1),
      NOW,
    );
  expect(canShow(40)).toMatchObject({ isReady: true, canShowNewRules: false });
  expect([7, 6, 0].map((missing) => canShow(missing).canShowNewRules)).toEqual([false, true, true]);
  expect(viewZone([], NOW).canShowNewRules).toBe(true);
  const sealed = Array.from({ length: 50 }, (_, i) => ({
    startsAtMs: (NOW_HOUR - 72 + i) * HOUR_MS,
    searchedThroughMs: null,
    state: "sealed" as const,
  }));
  expect(viewZone(sealed, NOW).canShowNewRules).toBe(true);
});

test("without the search a sealed history is enough, and the clock says what is over", () => {
  const listed = { searchedThroughMs: null, state: "sealed" as const };
  const hours = Array.from({ length: 60 }, (_, i) => ({
    ...listed,
    startsAtMs: (NOW_HOUR - 72 + i) * HOUR_MS,
  }));
  const view = viewZone(hours, NOW);
  expect(view.isReady).toBe(true);
  expect([29, 30].map((minute) => view.isTestable(NOW_HOUR * 60 + minute))).toEqual([true, false]);
  expect(view.isUnknownHour(NOW_HOUR - 5)).toBe(true);

  const unsealed = hours.map((hour) => ({ ...hour, state: "open" as const }));
  expect(viewZone(unsealed, NOW)).toMatchObject({ isReady: false });
  expect(viewZone(unsealed, NOW).isTestable(NOW_HOUR * 60 + 29)).toBe(false);
});

test("once the platform refuses the search, the clock says what is over as soon as an hour is sealed without it", () => {
  const past = Array.from({ length: 72 }, (_, i) => searched(NOW_HOUR - 72 + i));
  const minute = NOW_HOUR * 60 + 29;
  const refusedFor = (hours: number, state: "open" | "sealed") =>
    viewZone(
      past.map((hour, i) => (i < 72 - hours ? hour : { ...hour, searchedThroughMs: null, state })),
      NOW,
    );
  expect(refusedFor(1, "open").isTestable(minute)).toBe(false);
  expect(refusedFor(2, "sealed").isTestable(minute)).toBe(true);
  expect(refusedFor(24, "sealed")).toMatchObject({ isReady: true, canShowNewRules: true });
});

test("the fingerprint changes when an hour becomes known", () => {
  const before = viewZone(
    zone((age) => age !== 5),
    NOW,
  ).fingerprint;
  expect(
    viewZone(
      zone(() => true),
      NOW,
    ).fingerprint,
  ).not.toBe(before);
  expect(
    viewZone(
      zone((age) => age !== 6),
      NOW,
    ).fingerprint,
  ).not.toBe(before);
});
