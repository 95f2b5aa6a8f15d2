import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { HourLooks, Look } from "#model/covered-hour.ts";
import { KEPT_MS } from "#model/horizon.ts";
import { FIRST_WATCHED } from "#proof/rules/judge-hour.ts";
import { openHour } from "../proof/some-hours.ts";
import { reckonHours, type SoakHour } from "./reckon-hours.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 40);
/** The hour that ended five hours ago. */
const OLD = Date.UTC(2026, 10, 20, 10);

function look(over: Partial<Look> = {}): Look {
  const at = over.at ?? NOW - 2 * MINUTE_MS;
  return { at, since: at, pages: 1, count: 0, ids: "0".repeat(16), ...over };
}

function looks(each: Look, over: HourLooks = {}): HourLooks {
  return { list: each, search: each, counts: each, ...over };
}

function hour(over: Partial<SoakHour> = {}): SoakHour {
  const searched = { searchedThrough: OLD + HOUR_MS, closingSearchAt: NOW, reconciledAt: NOW };
  return { ...openHour(OLD, searched), zoneId: 101, gapReason: null, isComplete: false, ...over };
}

test("sealed hours and gaps with a reason pass, and a gap without a reason fails", () => {
  const gap = hour({ state: "gap", gapReason: "The platform's counts were never read." });
  expect(reckonHours(NOW, [hour({ state: "sealed" }), gap])).toEqual({
    sealed: 1,
    gaps: 1,
    reasons: new Map([["The platform's counts were never read.", 1]]),
    falseGaps: [],
    waiting: 0,
    waitingUntil: null,
    failures: [],
  });
  expect(reckonHours(NOW, [hour({ state: "gap", gapReason: "" })]).failures).toEqual([
    "zone 101 2026-11-20T10:00:00.000Z is a gap without a reason",
  ]);
});

test("a gap is false if every event is stored and it could have been prevented", () => {
  const gap = { state: "gap", isComplete: true } as const;
  const never = "The platform's counts were never read.";
  const hours = [hour({ ...gap, gapReason: never }), hour({ ...gap, gapReason: FIRST_WATCHED })];
  expect(reckonHours(NOW, hours).falseGaps).toEqual([`zone 101 2026-11-20T10:00:00.000Z: ${never}`]);
  expect(reckonHours(NOW, [hour({ ...gap, gapReason: never, isComplete: false })]).falseGaps).toEqual([]);
});

test("an undecided hour with events fails once it has settled, and is not yet due before", () => {
  const waiting = hour({ storedCount: 3, looks: looks(look({ count: 3 })), missingCells: 1 });
  expect(reckonHours(NOW, [waiting]).failures).toEqual([
    "zone 101 2026-11-20T10:00:00.000Z is not decided: the platform counts more events than are stored",
  ]);
  const startsAt = Date.UTC(2026, 10, 20, 14);
  const settling = hour({ startsAt, storedCount: 3 });
  expect(reckonHours(Date.UTC(2026, 10, 20, 15, 20), [settling])).toMatchObject({ waiting: 1, failures: [] });
  expect(reckonHours(NOW, [settling]).failures).toHaveLength(1);
});

test("an hour without events is not yet due before its second look, and fails when nothing comes of the look", () => {
  const since = NOW - 50 * MINUTE_MS;
  const empty = hour({ looks: looks(look({ since })) });
  expect(reckonHours(NOW, [empty])).toEqual({
    sealed: 0,
    gaps: 0,
    reasons: new Map(),
    falseGaps: [],
    waiting: 1,
    waitingUntil: since + HOUR_MS + 10 * MINUTE_MS,
    failures: [],
  });
  expect(reckonHours(NOW + 20 * MINUTE_MS, [empty]).failures).toHaveLength(1);
  // Without a search after the settle time, the hour does not wait for a second look.
  expect(reckonHours(NOW, [hour({ looks: {} })]).failures).toHaveLength(1);
});

test("an hour of which a route does not show every event waits until its looks have agreed for an hour, and no other hour does", () => {
  const good = look({ count: 3, ids: "000000000000000a" });
  const since = NOW - 30 * MINUTE_MS;
  const lower = look({ since, count: 2, ids: "000000000000000b" });
  const short = hour({ storedCount: 3, looks: looks(good, { list: lower }) });
  const beside = hour({ startsAt: OLD - HOUR_MS, storedCount: 3, looks: looks(good) });
  const found = reckonHours(NOW, [short, beside]);
  expect(found).toMatchObject({ waiting: 1, waitingUntil: since + HOUR_MS + 10 * MINUTE_MS });
  expect(found.failures).toEqual([expect.stringContaining(new Date(beside.startsAt).toISOString())]);
  expect(reckonHours(NOW + HOUR_MS, [short]).failures).toHaveLength(1);
});

test("among the hours that the platform has begun to forget, only the first two of a zone are not yet due, until they are forgotten", () => {
  const first = OLD - KEPT_MS;
  const hours = [0, 1, 2].map((index) => hour({ startsAt: first + index * HOUR_MS, looks: {} }));
  const failuresAt = (now: number) => reckonHours(now, hours).failures.map((text) => text.slice(20, 25));
  const [one, two, three] = hours.map(({ startsAt }) => new Date(startsAt).toISOString().slice(11, 16));
  expect(failuresAt(OLD + 30 * MINUTE_MS)).toEqual([two, three]);
  expect(failuresAt(OLD + 125 * MINUTE_MS)).toEqual([one, three]);
});
