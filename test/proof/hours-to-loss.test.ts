import { expect, test } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { hoursToLoss } from "#proof/rules/hour-status.ts";

const NOW = Date.parse("2026-11-20T15:30:00Z");
/** The platform's 72 hours, less the two minutes that are never requested. */
const HORIZON = NOW - 72 * HOUR_MS + 120_000;
const FIRST_HOUR = Date.parse("2026-11-17T15:00:00Z");
const LIVE = 72;

function hours(stateOf: (index: number) => "open" | "sealed" | "gap") {
  return Array.from({ length: LIVE + 1 }, (_, i) => ({
    startsAt: FIRST_HOUR + i * HOUR_MS,
    state: stateOf(i),
  }));
}

test("no hour is at risk if every ended hour is decided", () => {
  const decided = hours((i) => (i === LIVE ? "open" : i === 0 ? "gap" : "sealed"));
  expect(hoursToLoss(NOW, decided)).toBeNull();
  expect(hoursToLoss(NOW, decided.slice(0, LIVE))).toBeNull();
});

test("the oldest undecided hour says how long there is, until its first moment is forgotten", () => {
  const oneOpen = hours((i) => (i === 10 || i === 40 ? "open" : "sealed"));
  expect(hoursToLoss(NOW, oneOpen)).toBeCloseTo((FIRST_HOUR + 10 * HOUR_MS - HORIZON) / HOUR_MS, 9);
});

test("an hour that was never entered is undecided as well", () => {
  const all = hours(() => "sealed");
  expect(hoursToLoss(NOW, [...all.slice(0, 30), ...all.slice(31)])).toBeCloseTo(
    (FIRST_HOUR + 30 * HOUR_MS - HORIZON) / HOUR_MS,
    9,
  );
});

test("the zone's first hour is not at risk: its beginning was forgotten before the zone was watched", () => {
  const open = hours((i) => (i < 3 ? "open" : "sealed"));
  const untilSecond = (FIRST_HOUR + HOUR_MS - HORIZON) / HOUR_MS;
  expect(hoursToLoss(NOW, open, { firstHour: FIRST_HOUR })).toBeCloseTo(untilSecond, 9);
  const first = hours((i) => (i === 0 ? "open" : "sealed"));
  expect(hoursToLoss(NOW, first, { firstHour: FIRST_HOUR })).toBeNull();
  // A zone that has been watched for longer is losing this hour.
  expect(hoursToLoss(NOW, first, { firstHour: FIRST_HOUR - HOUR_MS })).toBe(0);
  expect(hoursToLoss(NOW + HOUR_MS, open, { firstHour: FIRST_HOUR })).toBe(0);
});

test("an undecided hour whose beginning is being forgotten has no time left", () => {
  expect(hoursToLoss(NOW, [])).toBe(0);
  expect(
    hoursToLoss(
      NOW,
      hours(() => "open"),
    ),
  ).toBe(0);
});
