import fc from "fast-check";
import { expect, test } from "vitest";
import { isPassedNews, type PassState, planPass } from "#ingest/rules/plan-pass.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CoveredHour, Look } from "#model/covered-hour.ts";
import { openHour } from "../proof/some-hours.ts";

const DAY = Date.UTC(2026, 10, 20);
const POLICY = {
  settleMs: 15 * MINUTE_MS,
  fullEveryMs: 15 * MINUTE_MS,
  idleFullEveryMs: 60 * MINUTE_MS,
  shortEveryMs: 2 * MINUTE_MS,
};
const SETTLED = DAY + DAY_MS + POLICY.settleMs;
const NOON = DAY + DAY_MS / 2;

function state(changed: Partial<PassState> = {}): PassState {
  return {
    startedAt: NOON,
    fullPassStartedAt: NOON,
    quietPassStartedAt: null,
    newEntries: 0,
    passResult: "full",
    ...changed,
  };
}

test.each<[string, number, PassState | null, ReturnType<typeof planPass>]>([
  ["a day never read gets a full pass", NOON, null, "full"],
  ["a pass that was killed is resumed", NOON + DAY_MS, state({ passResult: null }), "resume"],
  ["soon after a full pass a short one does", NOON + MINUTE_MS, state(), "short"],
  ["a full pass comes when it is due", NOON + POLICY.fullEveryMs, state(), "full"],
  [
    "short passes do not put off the full one",
    NOON + POLICY.fullEveryMs,
    state({ passResult: "short", startedAt: NOON + 14 * MINUTE_MS }),
    "full",
  ],
  ["a refused token begins a full pass at once", NOON + 1, state({ passResult: "token_rejected" }), "full"],
  [
    "a looped pass is left alone",
    NOON + MINUTE_MS,
    state({ passResult: "looped", fullPassStartedAt: null }),
    null,
  ],
  [
    "a looped pass is tried again in its turn",
    NOON + POLICY.fullEveryMs,
    state({ passResult: "looped", fullPassStartedAt: null }),
    "full",
  ],
  [
    "a pass without new entries while events may still come ends nothing",
    SETTLED + 1,
    state({ fullPassStartedAt: SETTLED - 1, quietPassStartedAt: SETTLED - 1 }),
    null,
  ],
  [
    "a settled day needs another full pass when that is due",
    SETTLED + POLICY.fullEveryMs,
    state({ fullPassStartedAt: SETTLED - 1, quietPassStartedAt: SETTLED - 1 }),
    "full",
  ],
  [
    "a pass without new entries after the day has settled ends it",
    SETTLED + 5 * HOUR_MS,
    state({ fullPassStartedAt: SETTLED, quietPassStartedAt: SETTLED }),
    null,
  ],
  [
    "a full pass after settling that brought news does not",
    SETTLED + DAY_MS,
    state({ fullPassStartedAt: SETTLED, quietPassStartedAt: null }),
    "full",
  ],
])("%s", (_promise, now, before, expected) => {
  expect(planPass(now, { dayStart: DAY, hours: [] }, before, POLICY)).toBe(expected);
});

test.each<[string, number, Partial<PassState>, number | null, ReturnType<typeof planPass>]>([
  ["the search read on and the pass brought nothing new", MINUTE_MS, {}, NOON + 1, null],
  ["short passes have been apart for long enough", 2 * MINUTE_MS, {}, NOON + 1, "short"],
  ["the pass brought new events", MINUTE_MS, { newEntries: 1 }, NOON + 1, "short"],
  ["the search has not read on since the pass began", MINUTE_MS, {}, NOON, "short"],
  ["the search is refused", MINUTE_MS, {}, null, "short"],
])("a short pass over today when %s", (_when, after, before, searchedThrough, expected) => {
  const hours = [openHour(NOON, { searchedThrough })];
  expect(planPass(NOON + after, { dayStart: DAY, hours }, state(before), POLICY)).toBe(expected);
});

const look = (changed: Partial<Look> = {}): Look => ({
  at: SETTLED,
  since: SETTLED,
  pages: 1,
  count: 3,
  ids: "three",
  ...changed,
});
const hourOf = (list: Look | undefined, facts: Partial<CoveredHour> = {}) =>
  openHour(NOON, { storedCount: 3, looks: list === undefined ? {} : { list }, ...facts });

/** An hour that begins so long before a quarter past noon that it ended, or settled, by then or not. */
const hourAt = (msBefore: number, facts: Partial<CoveredHour>) =>
  openHour(NOON + POLICY.fullEveryMs - HOUR_MS - msBefore + 1, { storedCount: 3, ...facts });

test.each<[string, CoveredHour]>([
  ["that the list has not shown", hourOf(undefined)],
  ["that gained an event since the list showed it", hourOf(look(), { lastNewAt: SETTLED + 1 })],
  ["that is known to lack an event", hourOf(look(), { missingCells: 1 })],
  ["of which the list showed another number of events", hourOf(look({ count: 2 }))],
])("a day with an hour %s is passed again, when that is due", (_which, hour) => {
  const before = state({ fullPassStartedAt: SETTLED, quietPassStartedAt: SETTLED });
  const day = { dayStart: DAY, hours: [hour] };
  expect(planPass(SETTLED + POLICY.fullEveryMs, day, before, POLICY)).toBe("full");
  expect(planPass(SETTLED + POLICY.fullEveryMs - 1, day, before, POLICY)).toBeNull();
  const proven = { dayStart: DAY, hours: [hourOf(look(), { lastNewAt: SETTLED - 1 })] };
  expect(planPass(SETTLED + POLICY.fullEveryMs, proven, before, POLICY)).toBeNull();
});

test.each<[string, CoveredHour[], ReturnType<typeof planPass>]>([
  ["no hour waits for it", [hourAt(HOUR_MS, { looks: { list: look() } })], "short"],
  ["the only hour that waits has not settled", [hourAt(POLICY.settleMs, {})], "short"],
  ["a settled hour waits for it", [hourAt(HOUR_MS + POLICY.settleMs, {})], "full"],
  ["nothing is known of its hours", [], "full"],
])(
  "today gets a full pass a quarter of an hour after the last one only if it is needed: %s",
  (_when, hours, expected) => {
    const now = NOON + POLICY.fullEveryMs;
    const before = state({ passResult: "short", startedAt: now - 5 * MINUTE_MS });
    const day = { dayStart: DAY, hours };
    expect(planPass(now, day, before, POLICY)).toBe(expected);
    expect(planPass(NOON + POLICY.idleFullEveryMs, day, before, POLICY)).toBe("full");
  },
);

test("a day with an hour that has to be proven anew is passed again in a third of the time", () => {
  const before = state({ fullPassStartedAt: SETTLED, quietPassStartedAt: SETTLED });
  const day = { dayStart: DAY, hours: [hourOf(look(), { proofFrom: SETTLED + 1 })] };
  expect(planPass(SETTLED + POLICY.fullEveryMs / 3, day, before, POLICY)).toBe("full");
  expect(planPass(SETTLED + POLICY.fullEveryMs / 3 - 1, day, before, POLICY)).toBeNull();
});

test("a day with an hour without events is passed a second time an hour after the first", () => {
  const before = state({ fullPassStartedAt: SETTLED, quietPassStartedAt: SETTLED });
  const hours = [hourOf(look({ count: 0 }), { storedCount: 0 })];
  expect(planPass(SETTLED + HOUR_MS - 1, { dayStart: DAY, hours }, before, POLICY)).toBeNull();
  expect(planPass(SETTLED + HOUR_MS, { dayStart: DAY, hours }, before, POLICY)).toBe("full");
});

test("a finished day is passed once more six hours after its end, and six hours before it leaves the list", () => {
  const day = { dayStart: DAY, hours: [hourOf(look())] };
  const secondAt = DAY + DAY_MS + 6 * HOUR_MS;
  const once = state({ startedAt: SETTLED, fullPassStartedAt: SETTLED, quietPassStartedAt: SETTLED });
  expect(planPass(secondAt - 1, day, once, POLICY)).toBeNull();
  expect(planPass(secondAt, day, once, POLICY)).toBe("full");
  const before = { ...once, startedAt: secondAt, fullPassStartedAt: secondAt };
  const lastFrom = DAY + 3 * DAY_MS - 6 * HOUR_MS;
  expect(planPass(lastFrom - 1, day, before, POLICY)).toBeNull();
  expect(planPass(lastFrom, day, before, POLICY)).toBe("full");
  const passed = { ...before, startedAt: lastFrom, fullPassStartedAt: lastFrom };
  expect(planPass(lastFrom + HOUR_MS, day, passed, POLICY)).toBeNull();
  const looped = { ...before, startedAt: lastFrom, passResult: "looped" as const };
  expect(planPass(lastFrom + POLICY.fullEveryMs - 1, day, looped, POLICY)).toBeNull();
  expect(planPass(lastFrom + POLICY.fullEveryMs, day, looped, POLICY)).toBe("full");
});

test("for any history, an unfinished day is planned again within the period, unless a pass without new entries ended it", () => {
  const at = fc.option(fc.integer({ min: DAY, max: SETTLED + DAY_MS }), { nil: null });
  const result = fc.constantFrom<PassState["passResult"]>(null, "full", "short", "looped", "token_rejected");
  fc.assert(
    fc.property(
      at,
      at,
      result,
      fc.integer({ min: DAY, max: SETTLED + 5 * HOUR_MS }),
      (full, quiet, passResult, now) => {
        const startedAt = Math.min(now, full ?? now);
        const before = {
          startedAt,
          fullPassStartedAt: full,
          quietPassStartedAt: quiet,
          newEntries: 0,
          passResult,
        };
        const later = Math.max(now, startedAt, full ?? 0) + POLICY.fullEveryMs;
        const isEnded = passResult !== null && quiet !== null && quiet >= SETTLED;
        expect(planPass(later, { dayStart: DAY, hours: [] }, before, POLICY) === null).toBe(isEnded);
      },
    ),
  );
});

/** Reads pages as a short pass would; returns how many it read before it stopped. */
function readShort(
  pages: readonly { times: readonly number[]; isNew: (at: number) => boolean }[],
  lateFrom = Number.POSITIVE_INFINITY,
): number {
  let before: { firstAt: number | null } = { firstAt: null };
  let earliestNew: number | null = null;
  let read = 0;
  for (const { times, isNew } of pages) {
    read++;
    const firstAt = times.length === 0 ? null : Math.min(...times);
    const lastAt = times.length === 0 ? null : Math.max(...times);
    const newEntries = times.filter(isNew).length;
    if (isPassedNews({ newEntries, firstAt, lastAt }, before, { earliestNew, lateFrom })) break;
    if (newEntries > 0 && firstAt !== null) earliestNew = Math.min(earliestNew ?? firstAt, firstAt);
    before = { firstAt };
  }
  return read;
}

const times = fc.uniqueArray(fc.integer({ min: 0, max: 100_000 }), { minLength: 30, maxLength: 60 });

function pagesOf(all: readonly number[], isNew: (at: number) => boolean) {
  return Array.from({ length: Math.ceil(all.length / 10) }, (_, page) => ({
    times: all.slice(page * 10, page * 10 + 10),
    isNew,
  }));
}

test("a short pass over pages that come oldest first never stops before the end", () => {
  fc.assert(
    fc.property(times, fc.nat(100_000), (all, since) => {
      const pages = pagesOf(
        [...all].sort((a, b) => a - b),
        (at) => at >= since,
      );
      expect(readShort(pages)).toBe(pages.length);
    }),
  );
});

test("a short pass over pages that come newest first reads all that is newer than what was stored", () => {
  fc.assert(
    fc.property(times, fc.nat(100_000), (all, since) => {
      const pages = pagesOf(
        [...all].sort((a, b) => b - a),
        (at) => at >= since,
      );
      const read = readShort(pages);
      const unread = pages.slice(read).flatMap((page) => page.times.filter((at) => at >= since));
      expect(unread).toEqual([]);
      // One page of known entries is enough; without new entries a second page shows that the order is descending.
      const withNews = pages.filter((page) => page.times.some((at) => at >= since)).length;
      expect(read).toBeLessThanOrEqual(Math.max(withNews + 1, 2));
    }),
  );
});

test("a short pass over pages that come newest first reads every page with entries that may be late", () => {
  fc.assert(
    fc.property(times, fc.nat(100_000), fc.nat(100_000), (all, since, lateFrom) => {
      const pages = pagesOf(
        [...all].sort((a, b) => b - a),
        (at) => at >= since,
      );
      const unread = pages.slice(readShort(pages, lateFrom)).flatMap((page) => page.times);
      expect(unread.filter((at) => at >= Math.min(since, lateFrom))).toEqual([]);
    }),
  );
});

test("an empty page says nothing about those behind it", () => {
  const page = { newEntries: 0, firstAt: null, lastAt: null };
  expect(isPassedNews(page, { firstAt: 5 }, { earliestNew: 3, lateFrom: 9 })).toBe(false);
});
