import { expect, test } from "vitest";
import { copyProgress } from "#health/service/zones.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";

const NOW = Date.UTC(2026, 10, 24, 12, 30);
const FIRST = startOfHour(horizonAt(NOW));
const HOURS = (startOfHour(NOW) - FIRST) / HOUR_MS - 1;

function hour(startsAt: number, searchedThrough: number | null = startsAt + HOUR_MS) {
  return { startsAt, state: "open" as "open" | "sealed" | "gap", searchedThrough };
}

const all = Array.from({ length: HOURS + 1 }, (_, index) => hour(FIRST + index * HOUR_MS));
const live = hour(startOfHour(NOW), NOW - MINUTE_MS);

test("the progress is the share of the ended hours that were read to their end", () => {
  const begun = hour(FIRST + 4 * HOUR_MS, FIRST + 4.5 * HOUR_MS);
  expect(copyProgress(NOW, [...all.slice(0, 4), begun, live])).toEqual({ hours: HOURS, done: 4 });
});

test("an hour that the list alone has decided counts as read", () => {
  const sealed = { ...hour(FIRST, null), state: "sealed" as const };
  expect(copyProgress(NOW, [sealed, live])?.done).toBe(1);
});

test("nothing is being copied once every hour was read, also while the newest ended hour is still open", () => {
  expect(copyProgress(NOW, [...all.slice(0, -1), live])).toBeNull();
});

test("nothing is being copied while the platform does not answer", () => {
  expect(
    copyProgress(NOW, [...all.slice(0, 4), { ...live, searchedThrough: NOW - 6 * MINUTE_MS }]),
  ).toBeNull();
  expect(copyProgress(NOW, [])).toBeNull();
});
