import fc from "fast-check";
import { expect, test } from "vitest";
import { type HourContents, LACKING } from "../../src/coverage/hour-proof.ts";
import { explainOpen, FIRST_WATCHED, type JudgedHour, judgeHour } from "../../src/coverage/judge-hour.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/units.ts";
import type { CoveredHour } from "../../src/model/covered-hour.ts";
import { horizonAt, startOfDay } from "../../src/model/horizon.ts";
import type { Look } from "../../src/model/look.ts";
import { anHour, JUDGED_ZONE, NOW, openHour, SETTLE_MS } from "./some-hours.ts";

const START = Date.UTC(2026, 10, 20, 10);
const SETTLED = START + HOUR_MS + SETTLE_MS;

const look = (changed: Partial<Look> = {}): Look => ({
  at: SETTLED,
  since: SETTLED,
  pages: 1,
  count: 7,
  ids: "seven",
  peak: 7,
  ...changed,
});
const LOOKS = { list: look(), search: look(), counts: look({ ids: "cells" }) };
const STORED = { count: 7, ids: "seven", unresolved: 0, doubled: 0 };

function proven({ looks = {}, ...changed }: Partial<JudgedHour> = {}): JudgedHour {
  const searched = { searchedThrough: START + HOUR_MS, closingSearchAt: SETTLED };
  const counted = { reconciledAt: SETTLED, upstreamCount: 7, storedCount: 7 };
  const hour = openHour(START, { ...searched, ...counted, lastNewAt: SETTLED - 1 });
  return {
    ...hour,
    firstHour: START - 9 * HOUR_MS,
    stored: STORED,
    ...changed,
    looks: { ...LOOKS, ...looks },
  };
}

const judge = (hour: JudgedHour, changed: Partial<typeof JUDGED_ZONE> = {}, now = SETTLED + 2 * HOUR_MS) =>
  judgeHour(now, hour, { ...JUDGED_ZONE, ...changed });

test("an hour that every look agrees on is sealed, and the evidence shows each look", () => {
  const shown = { at: "2026-11-20T11:15:00.000Z", since: "2026-11-20T11:15:00.000Z", pages: 1, count: 7 };
  expect(judge(proven())).toEqual({
    state: "sealed",
    evidence: {
      stored: { count: 7, ids: "seven" },
      list: { ...shown, ids: "seven" },
      search: { ...shown, ids: "seven" },
      counts: { ...shown, ids: "cells", surplusCells: 0 },
      lastNewAt: "2026-11-20T11:14:59.999Z",
    },
    looks: LOOKS,
  });
});

const LACKS = { count: 2, known: 2, ids: ["x", "y"], rules: { "942100": 2 } };
const DROPPED = {
  search: look({ count: 5, ids: "five", since: SETTLED, at: SETTLED + 10 * MINUTE_MS, lacks: LACKS }),
  counts: look({ count: 5, at: SETTLED + 10 * MINUTE_MS, lacks: { ...LACKS, ids: [] } }),
};

test.each<[string, Partial<JudgedHour>, string]>([
  ["no list look", { looks: { list: undefined } as never }, "list"],
  ["a list look that began before it had settled", { looks: { list: look({ at: SETTLED - 1 }) } }, "list"],
  ["no search look", { looks: { search: undefined } as never }, "search"],
  [
    "a search look that began before it had settled",
    { looks: { search: look({ at: SETTLED - 1 }) } },
    "search",
  ],
  ["no comparison", { looks: { counts: undefined } as never }, "counts"],
  ["an event since the comparison", { lastNewAt: SETTLED }, "counts"],
  ["an event in the millisecond of the comparison", { lastNewAt: SETTLED }, "counts"],
  ["a rule with fewer events here", { missingCells: 1 }, "missing"],
  ["counts below what is stored that nothing explains", { looks: { counts: look({ count: 6 }) } }, "counts"],
  ["counts above what is stored", { looks: { counts: look({ count: 8 }) } }, "missing"],
  [
    "a count of 0 for stored events",
    { looks: { counts: look({ count: 0, lacks: { ...LACKS, count: 7 } }) } },
    "zero",
  ],
  ["a list that shows other events", { looks: { list: look({ ids: "other" }) } }, "listDiffers"],
  [
    "a list that shows nothing",
    { looks: { list: look({ count: 0, ids: "none", since: 0 }) } },
    "listDiffers",
  ],
  ["a search that shows other events", { looks: { search: look({ ids: "other" }) } }, "searchDiffers"],
  ["a log id stored twice", { stored: { ...STORED, doubled: 1 } }, "doubled"],
  ["an event without all dimensions", { stored: { ...STORED, unresolved: 1 } }, "unresolved"],
  ["looks from before it has to be proven anew", { proofFrom: SETTLED + 1 }, "search"],
  [
    "events that the search lacks for less than ten minutes",
    { surplusCells: 1, looks: { ...DROPPED, search: { ...DROPPED.search, since: SETTLED + 1 } } },
    "searchDiffers",
  ],
  [
    "events that the search lacks and the list does not show either",
    { surplusCells: 1, looks: { ...DROPPED, list: look({ ids: "other" }) } },
    "searchDiffers",
  ],
  [
    "counts that lack other rules than the search",
    {
      surplusCells: 1,
      looks: { ...DROPPED, counts: { ...DROPPED.counts, lacks: { ...LACKS, rules: { "1": 2 } } } },
    },
    "surplus",
  ],
  [
    "a search that lacks an event while the counts equal what is stored",
    { looks: { search: DROPPED.search, counts: look({ at: DROPPED.counts.at, ids: "cells" }) } },
    "lacksDiffer",
  ],
  [
    "more lacking rules than are named",
    {
      surplusCells: 1,
      looks: {
        search: { ...DROPPED.search, lacks: { ...LACKS, rules: {} } },
        counts: { ...DROPPED.counts, lacks: { ...LACKS, rules: {} } },
      },
    },
    "surplus",
  ],
])("an hour with %s stays open", (_lack, changed, lacking) => {
  expect(judge(proven(changed))).toEqual({ state: "open", lacking });
});

test("events that the search has dropped and the list proves are named in the evidence, after ten minutes", () => {
  const verdict = judge(proven({ surplusCells: 1, looks: DROPPED }));
  expect(verdict).toMatchObject({
    state: "sealed",
    evidence: { stored: { count: 7 }, search: { count: 5, lacks: LACKS }, counts: { surplusCells: 1 } },
    // What the routes show at the seal is what they have to go on showing.
    looks: { search: { peak: 5 }, counts: { peak: 5 } },
  });
});

test("a list that lacks what search and counts agree on blocks the seal for an hour, then the evidence says so", () => {
  const short = (agreedMs: number) => ({ list: look({ count: 6, ids: "six", at: SETTLED + agreedMs }) });
  expect(judge(proven({ looks: short(HOUR_MS - 1) }))).toEqual({ state: "open", lacking: "listDiffers" });
  expect(judge(proven({ looks: short(HOUR_MS) }))).toMatchObject({
    state: "sealed",
    evidence: { listLacks: 1 },
  });
});

test("an hour without events needs two looks of each route an hour apart, or metrics that agree with its day", () => {
  const empty = (agreedMs: number) => {
    const seen = look({ count: 0, ids: "none", peak: 0, at: SETTLED + agreedMs });
    return proven({
      stored: { count: 0, ids: "none", unresolved: 0, doubled: 0 },
      storedCount: 0,
      upstreamCount: 0,
      lastNewAt: null,
      looks: { list: seen, search: seen, counts: seen },
    });
  };
  expect(judge(empty(HOUR_MS - 1))).toEqual({ state: "open", lacking: "empty" });
  expect(judge(empty(HOUR_MS)).state).toBe("sealed");
  const confirmedDays = new Set([startOfDay(START)]);
  expect(judge(empty(0), { confirmedDays }).state).toBe("sealed");
  expect(explainOpen(SETTLED, empty(0), SETTLE_MS)).toContain(
    "a second look one hour after the first must confirm that",
  );
});

test("an hour without events whose second look would have come too late is a gap that nobody could have prevented", () => {
  const lost = START + 72 * HOUR_MS;
  const empty = (since: number) => {
    const seen = look({ count: 0, ids: "none", peak: 0, at: since, since });
    const stored = { count: 0, ids: "none", unresolved: 0, doubled: 0 };
    return judge(
      proven({ stored, storedCount: 0, looks: { list: undefined, search: seen, counts: seen } as never }),
      {},
      lost,
    );
  };
  expect(empty(lost - 61 * MINUTE_MS)).toMatchObject({
    state: "gap",
    reason: expect.stringContaining("second look could"),
  });
  expect(empty(lost - 63 * MINUTE_MS)).toMatchObject({
    state: "gap",
    reason: expect.stringContaining("before they were proven"),
  });
});

test("nothing is sealed while a route of the zone is suspect, and an hour that expires meanwhile names it", () => {
  const suspicion = "The list shows 3 of 9 events.";
  expect(judge(proven(), { suspicion })).toEqual({ state: "open", lacking: null });
  const lost = START + 72 * HOUR_MS;
  expect(judge(proven(), { suspicion }, lost)).toMatchObject({
    state: "gap",
    reason: `The platform answered incompletely: ${suspicion}`,
  });
});

test("a day that the list no longer serves is proven by a search that found nothing new, and the evidence says so", () => {
  const now = startOfDay(START) + 3 * DAY_MS;
  const late = { looks: { list: undefined } as never, lastNewAt: SETTLED - 1 };
  expect(judge(proven(late), {}, now)).toMatchObject({ state: "sealed", evidence: { list: null } });
  expect(judge(proven(late), {}, now - 1)).toEqual({ state: "open", lacking: "list" });
  const counts = look({ at: SETTLED + 2 });
  const found = { looks: { list: undefined, counts } as never, lastNewAt: SETTLED + 1 };
  expect(judge(proven(found), {}, now)).toEqual({ state: "open", lacking: "search" });
});

test("an earlier look of the list proves an event that search and counts drop after the list ceased to serve its day", () => {
  const now = startOfDay(START) + 3 * DAY_MS;
  const dropped = (list: Look) =>
    judge(proven({ surplusCells: 1, proofFrom: SETTLED + 1, looks: { ...DROPPED, list } }), {}, now);
  expect(dropped(look())).toMatchObject({ state: "sealed", evidence: { list: { count: 7 } } });
  expect(dropped(look({ ids: "other" }))).toEqual({ state: "open", lacking: "searchDiffers" });
});

test("what the metrics count above every route is named in the evidence of the day's hours", () => {
  const above = [{ day: "2026-11-20", ruleId: "942100", platform: 12, stored: 7, fetchedAt: SETTLED }];
  const verdict = judge(proven(), { metricsAbove: new Map([["2026-11-20", above]]) });
  const shown = above.map((count) => ({ ...count, fetchedAt: new Date(count.fetchedAt).toISOString() }));
  expect(verdict).toMatchObject({ state: "sealed", evidence: { metricsAbove: shown } });
});

test.each<[string, Partial<JudgedHour>, RegExp]>([
  ["the zone's first hour", { firstHour: START, closingSearchAt: null }, /first watched/],
  ["the zone's second hour", { firstHour: START - HOUR_MS, closingSearchAt: null }, /within an hour after/],
  [
    "an hour that was never searched",
    { searchedThrough: null, closingSearchAt: null },
    /^No search was made before/,
  ],
  [
    "an hour that was searched in part",
    { searchedThrough: START + 1, closingSearchAt: null },
    /had reached only 2026-11-20T10:00:00.001Z/,
  ],
  [
    "an hour without a closing search",
    { closingSearchAt: null },
    /^No full search was made after the settle time/,
  ],
  ["an hour that was never compared", { reconciledAt: null }, /counts were never read/],
  ["an hour that lacks events", { missingCells: 3 }, /more events than Longwatch could copy, for 3 rules/],
  [
    "an hour that gained events last",
    { lastNewAt: SETTLED + 1, looks: LOOKS },
    /since the last change is missing/,
  ],
])(
  "%s becomes a gap with its reason once its first moment can no longer be asked for",
  (_what, changed, reason) => {
    const lost = START + 72 * HOUR_MS - 120_000;
    const hour = proven({ looks: { list: undefined, search: undefined } as never, ...changed });
    expect(judge(hour, {}, lost).state).toBe("open");
    expect(judge(hour, {}, lost + 1)).toMatchObject({
      state: "gap",
      reason: expect.stringMatching(reason),
      evidence: { from: "2026-11-20T10:00:00.000Z", to: "2026-11-20T11:00:00.000Z", stored: { count: 7 } },
    });
  },
);

test("only the zone's first hour is excused", () => {
  const lost = judge(
    proven({ searchedThrough: null, reconciledAt: null, stored: null }),
    {},
    START + 80 * HOUR_MS,
  );
  expect(lost).toMatchObject({ state: "gap" });
  expect(lost).not.toMatchObject({ reason: FIRST_WATCHED });
});

/** What every sealed hour has in common, said without the rules of `findLacking`. */
function isPlainlyProven(hour: CoveredHour, stored: HourContents): boolean {
  const { search, list, counts } = hour.looks;
  const settled = hour.startsAt + HOUR_MS + SETTLE_MS;
  const isExact = (look: Look | undefined) =>
    look !== undefined && look.at >= settled && look.count === stored.count && look.ids === stored.ids;
  if (stored.doubled + hour.missingCells > 0 || counts === undefined || counts.at < settled) return false;
  if (stored.count === 0) return search?.count === 0 && counts.count === 0;
  return (isExact(search) || isExact(list)) && counts.count + (counts.lacks?.count ?? 0) === stored.count;
}

test("whatever is recorded: sealed only where search or list show exactly what is stored, a gap only when it can no longer be asked for", () => {
  const count = fc.integer({ min: 0, max: 2 });
  const contents = fc.record({
    count,
    ids: fc.constantFrom("a", "b"),
    unresolved: fc.constantFrom(0, 0, 1),
    doubled: fc.constantFrom(0, 0, 1),
  });
  let sealed = 0;
  fc.assert(
    fc.property(anHour(), contents, (hour, stored) => {
      const { state } = judgeHour(NOW, { ...hour, stored, firstHour: 0 }, JUDGED_ZONE);
      if (state === "sealed") sealed++;
      const isExpired = hour.startsAt < horizonAt(NOW);
      expect(state === "sealed" || state === (isExpired ? "gap" : "open")).toBe(true);
      expect(state !== "sealed" || isPlainlyProven(hour, stored)).toBe(true);
    }),
    { numRuns: 20_000 },
  );
  expect(sealed).toBeGreaterThan(0);
});

test("a reason that coverage prints once for several hours does not speak of one hour", () => {
  for (const reason of Object.values(LACKING)) expect(reason).not.toMatch(/\b(it|its|this hour)\b/i);
});
