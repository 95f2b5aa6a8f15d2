import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, firstListedDay, HOUR_MS, horizonAt, startOfDay } from "../../src/coverage/horizon.ts";
import { FIRST_WATCHED, type JudgedHour, judgeHour } from "../../src/coverage/judge-hour.ts";
import { anHour, NOW, openHour, POLICY, SETTLE_MS } from "./some-hours.ts";

const START = Date.UTC(2026, 10, 20, 10);
const SETTLED = START + HOUR_MS + SETTLE_MS;

function proven(changed: Partial<JudgedHour> = {}): JudgedHour {
  const searched = { searchedThrough: START + HOUR_MS, closingSearchAt: SETTLED };
  const counted = { reconciledAt: SETTLED, upstreamCount: 7, storedCount: 7 };
  const hour = openHour(START, { ...searched, ...counted, lastNewAt: SETTLED - 1 });
  return { ...hour, fullPassStartedAt: SETTLED, isFirst: false, ...changed };
}

test("an hour with all three proofs is sealed, and the evidence names them with their times and counts", () => {
  expect(judgeHour(SETTLED, proven(), POLICY)).toEqual({
    state: "sealed",
    evidence: {
      settleMs: SETTLE_MS,
      list: { passStartedAt: "2026-11-20T11:15:00.000Z" },
      search: { startedAt: "2026-11-20T11:15:00.000Z" },
      counts: { readAt: "2026-11-20T11:15:00.000Z", upstream: 7, stored: 7, surplusCells: 0 },
      lastNewAt: "2026-11-20T11:14:59.999Z",
    },
  });
});

test.each<[string, Partial<JudgedHour>]>([
  ["no list pass", { fullPassStartedAt: null }],
  ["a list pass that began before it had settled", { fullPassStartedAt: SETTLED - 1 }],
  ["an event since the list pass began", { lastNewAt: SETTLED, reconciledAt: SETTLED + 1 }],
  ["no closing search", { closingSearchAt: null }],
  ["a search that began before it had settled", { closingSearchAt: SETTLED - 1 }],
  ["no comparison", { reconciledAt: null, upstreamCount: null }],
  ["a comparison before it had settled", { reconciledAt: SETTLED - 1, lastNewAt: null }],
  ["an event since the comparison", { lastNewAt: SETTLED, fullPassStartedAt: SETTLED + 1 }],
  ["a rule with fewer events here", { missingCells: 1 }],
  ["another count than the platform's", { storedCount: 8 }],
  ["more events there in spite of surplus rules", { surplusCells: 1, upstreamCount: 8 }],
])("an hour with %s stays open", (_lack, changed) => {
  expect(judgeHour(SETTLED + HOUR_MS, proven(changed), POLICY)).toEqual({ state: "open" });
});

test("what the platform has deleted since is named in the evidence and blocks no seal", () => {
  const verdict = judgeHour(SETTLED, proven({ surplusCells: 2, upstreamCount: 4 }), POLICY);
  expect(verdict).toMatchObject({
    state: "sealed",
    evidence: { counts: { upstream: 4, stored: 7, surplusCells: 2 } },
  });
});

test("a day that the list no longer serves is proven by a search that found nothing new, and the evidence says so", () => {
  const now = startOfDay(START) + 3 * DAY_MS;
  const late = { fullPassStartedAt: null, closingSearchAt: SETTLED, lastNewAt: SETTLED - 1 };
  expect(judgeHour(now, proven(late), POLICY)).toMatchObject({ state: "sealed", evidence: { list: null } });
  expect(judgeHour(now - 1, proven(late), POLICY)).toEqual({ state: "open" });
  const found = { ...late, lastNewAt: SETTLED, reconciledAt: SETTLED + 1 };
  expect(judgeHour(now, proven(found), POLICY)).toEqual({ state: "open" });
});

test.each<[string, Partial<JudgedHour>, RegExp]>([
  ["the zone's first hour", { isFirst: true, closingSearchAt: null }, /first watched/],
  ["an hour that was never searched", { searchedThrough: null, closingSearchAt: null }, /never searched/],
  [
    "an hour that was searched in part",
    { searchedThrough: START + 1, closingSearchAt: null },
    /only up to 2026-11-20T10:00:00.001Z/,
  ],
  ["an hour without a closing search", { closingSearchAt: null }, /not searched from end to end/],
  ["an hour that was never compared", { reconciledAt: null }, /counts were never read/],
  ["an hour that lacks events", { missingCells: 3 }, /more events than could be copied, under 3/],
  ["an hour that gained events last", { lastNewAt: SETTLED + 1 }, /gained events/],
])(
  "%s becomes a gap with its reason once its first moment can no longer be asked for",
  (_what, changed, reason) => {
    const lost = START + 72 * HOUR_MS - 120_000;
    const hour = proven({ fullPassStartedAt: null, ...changed });
    expect(judgeHour(lost, hour, POLICY)).toEqual({ state: "open" });
    expect(judgeHour(lost + 1, hour, POLICY)).toMatchObject({
      state: "gap",
      reason: expect.stringMatching(reason),
      evidence: { from: "2026-11-20T10:00:00.000Z", to: "2026-11-20T11:00:00.000Z", counts: { stored: 7 } },
    });
  },
);

test("only the zone's first hour is excused", () => {
  const lost = judgeHour(START + 80 * HOUR_MS, proven({ searchedThrough: null, reconciledAt: null }), POLICY);
  expect(lost).toMatchObject({ state: "gap" });
  expect(lost).not.toMatchObject({ reason: FIRST_WATCHED });
});

test("whatever is recorded: sealed only with every proof, a gap only when it can no longer be asked for", () => {
  const pass = fc.option(fc.integer({ min: NOW - 80 * HOUR_MS, max: NOW }), { nil: null });
  let sealed = 0;
  fc.assert(
    fc.property(anHour(), pass, fc.boolean(), (hour, fullPassStartedAt, isFirst) => {
      const verdict = judgeHour(NOW, { ...hour, fullPassStartedAt, isFirst }, POLICY);
      const settled = hour.startsAt + HOUR_MS + SETTLE_MS;
      const gained = hour.lastNewAt ?? 0;
      const isListed = startOfDay(hour.startsAt) >= firstListedDay(NOW);
      const byList = fullPassStartedAt !== null && fullPassStartedAt >= settled && gained < fullPassStartedAt;
      const bySearch = !isListed && gained < (hour.closingSearchAt ?? 0);
      const isProven =
        settled <= NOW &&
        (hour.closingSearchAt ?? 0) >= settled &&
        (hour.reconciledAt ?? 0) >= settled &&
        gained < (hour.reconciledAt ?? 0) &&
        hour.missingCells === 0 &&
        hour.upstreamCount !== null &&
        (hour.upstreamCount === hour.storedCount) === (hour.surplusCells === 0) &&
        hour.upstreamCount <= hour.storedCount &&
        (byList || bySearch);
      if (isProven) sealed++;
      const expected = isProven ? "sealed" : hour.startsAt < horizonAt(NOW) ? "gap" : "open";
      expect(verdict.state).toBe(expected);
    }),
    { numRuns: 3_000 },
  );
  expect(sealed).toBeGreaterThan(0);
});
