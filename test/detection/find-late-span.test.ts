import { expect, test } from "vitest";
import { findLateSpan } from "#detection/rules/find-late.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { CopiedHour } from "#model/covered-hour.ts";

const JUDGED = { isCopied: true, isJudged: true, rulesFrom: "start", rulesThrough: "end" } as const;
const MISSED = { isCopied: true, isJudged: false, rulesFrom: null, rulesThrough: null } as const;

interface Given extends Partial<Omit<CopiedHour, "rulesFrom" | "rulesThrough">> {
  readonly rulesFrom: "start" | number | null;
  readonly rulesThrough: "end" | number | null;
}

/** Hours from 100 on; the last one is not judgeable yet. */
function find(...given: Given[]) {
  const hours = given.map(({ rulesFrom, rulesThrough, ...rest }, i) => {
    const hour = 100 + i;
    return {
      hour,
      isGap: false,
      isCopied: false,
      isJudged: false,
      events: 100,
      isSearched: true,
      lastNewAt: hour * HOUR_MS + 1,
      ...rest,
      rulesFrom: rulesFrom === "start" ? hour * 60 : rulesFrom,
      rulesThrough: rulesThrough === "end" ? hour * 60 + 60 : rulesThrough,
    };
  });
  return findLateSpan(hours, 100 + given.length - 1);
}

test("hours that were judged as they came are left alone", () => {
  expect(find(JUDGED, JUDGED, JUDGED)).toBeNull();
});

test("an outage is judged together with the hours after it, and named by the minutes that nobody judged", () => {
  const begun = { ...MISSED, rulesFrom: "start", rulesThrough: 100 * 60 + 5 } as const;
  const resumed = { ...MISSED, rulesFrom: 102 * 60 + 20, rulesThrough: "end" } as const;
  expect(find(begun, MISSED, resumed, JUDGED, JUDGED)).toEqual({
    from: 100,
    to: 104,
    fromMinute: 100 * 60 + 5,
    toMinute: 102 * 60 + 20,
    isLast: true,
    isRecent: false,
  });
});

test("an hour that is still being copied has the others wait, a gap does not", () => {
  const missing = { ...MISSED, isCopied: false } as const;
  expect(find(MISSED, missing, JUDGED, JUDGED)).toBeNull();
  expect(find(MISSED, JUDGED, missing, JUDGED)).toBeNull();
  expect(find(MISSED, { ...missing, isGap: true }, JUDGED, JUDGED)).toMatchObject({ from: 100, to: 103 });
});

test("without a search, the newest hours are sealed later and do not have the others wait", () => {
  const sealed = { ...MISSED, isSearched: false } as const;
  const open = { ...sealed, isCopied: false } as const;
  expect(find(sealed, sealed, open, open)).toMatchObject({ from: 100, to: 102 });
});

test("an outage that ends within the newest hour waits for the end of that hour", () => {
  expect(find(JUDGED, MISSED, { ...MISSED, rulesFrom: 102 * 60 + 20, rulesThrough: 6_150 })).toBeNull();
  expect(find(JUDGED, MISSED, { ...JUDGED, rulesThrough: 6_150 })).toMatchObject({ from: 101, to: 102 });
});

test("a flood is judged in parts", () => {
  const flood = { ...MISSED, events: 1_500_000 } as const;
  expect(find(flood, flood, flood, JUDGED)).toMatchObject({ from: 100, to: 102, isLast: false });
});

test("events that came while the next hour was judged have that hour judged again", () => {
  const late = { ...MISSED, lastNewAt: 101 * HOUR_MS + 1_500_000 } as const;
  expect(find(late, JUDGED)).toMatchObject({ from: 100, to: 101, isRecent: true });
});
