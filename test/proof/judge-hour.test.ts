import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CoveredHour, HourContents, Look } from "#model/covered-hour.ts";
import { firstListedDay, horizonAt, startOfDay } from "#model/horizon.ts";
import { LACKING } from "#proof/rules/hour-proof.ts";
import { explainOpen, FIRST_WATCHED, type JudgedHour, judgeHour } from "#proof/rules/judge-hour.ts";
import { anHour, JUDGED_ZONE, NOW, openHour, SETTLE_MS } from "./some-hours.ts";

const START = Date.UTC(2026, 10, 20, 10);
const SETTLED = START + HOUR_MS + SETTLE_MS;

/** Digests of sets of log ids. They join by exclusive or. */
const [SEVEN, FIVE, TWO, OTHER, NONE] = ["07", "05", "02", "0f", "00"].map((end) =>
  end.padStart(16, "0"),
) as [string, string, string, string, string];

const look = (changed: Partial<Look> = {}): Look => ({
  at: SETTLED,
  since: SETTLED,
  pages: 1,
  count: 7,
  ids: SEVEN,
  ...changed,
});
const LOOKS = { list: look(), search: look(), counts: look({ ids: "cells" }) };
const STORED = { count: 7, ids: SEVEN, unresolved: 0, doubled: 0, contestedAt: null, revised: 0 };
const EMPTY = { ...STORED, count: 0, ids: NONE };

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
      stored: { count: 7, ids: SEVEN },
      list: { ...shown, ids: SEVEN },
      search: { ...shown, ids: SEVEN },
      counts: { ...shown, ids: "cells", surplusCells: 0 },
      lastNewAt: "2026-11-20T11:14:59.999Z",
    },
  });
});

const LACKS = { count: 2, ids: ["x", "y"], digest: TWO, rules: { "942100": 2 } };
/** Search and counts lack the same two events; each look agrees since the hour has settled. */
const dropped = (agreedMs: number) => ({
  search: look({ count: 5, ids: FIVE, at: SETTLED + agreedMs, lacks: LACKS }),
  counts: look({ count: 5, ids: "cells", at: SETTLED + agreedMs, lacks: { ...LACKS, ids: [] } }),
});
const DROPPED = dropped(10 * MINUTE_MS);

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
  ["a rule with fewer events here", { missingCells: 1 }, "missing"],
  ["counts below what is stored that nothing explains", { looks: { counts: look({ count: 6 }) } }, "counts"],
  ["counts above what is stored", { looks: { counts: look({ count: 8 }) } }, "missing"],
  ["a list that shows other events", { looks: { list: look({ ids: OTHER }) } }, "listDiffers"],
  ["a list that shows more events", { looks: { list: look({ count: 8, ids: OTHER }) } }, "listDiffers"],
  ["a list that shows nothing", { looks: { list: look({ count: 0, ids: NONE }) } }, "listShort"],
  ["a search that shows other events", { looks: { search: look({ ids: OTHER }) } }, "searchDiffers"],
  [
    "a search that shows an event that is not stored beside those that it lacks",
    { looks: { ...DROPPED, search: { ...DROPPED.search, ids: OTHER } } },
    "searchDiffers",
  ],
  ["a log id stored twice", { stored: { ...STORED, doubled: 1 } }, "doubled"],
  ["an event without all dimensions", { stored: { ...STORED, unresolved: 1 } }, "unresolved"],
  ["a value that a look has contested", { stored: { ...STORED, contestedAt: SETTLED - 1 } }, "contested"],
  ["looks from before it has to be proven anew", { proofFrom: SETTLED + 1 }, "search"],
])("an hour with %s stays open", (_lack, changed, lacking) => {
  expect(judge(proven(changed))).toEqual({ state: "open", lacking });
});

/** What each route shows of seven stored events, and for how long it has to agree on that. */
test.each<[string, (agreedMs: number) => JudgedHour["looks"], number]>([
  ["search and counts lack the same two, and the list shows them", dropped, 10],
  [
    "search, list and counts lack the same two",
    (agreed) => ({ ...dropped(agreed), list: look({ count: 5, ids: FIVE, at: SETTLED + agreed }) }),
    10,
  ],
  [
    "search and counts lack two of different rules",
    (agreed) => {
      const { search, counts } = dropped(agreed);
      return { search, counts: { ...counts, lacks: { ...LACKS, rules: { "1": 2 } } } };
    },
    60,
  ],
  ["the search lacks two that the counts count", (agreed) => ({ search: dropped(agreed).search }), 60],
  ["the counts lack two that the search shows", (agreed) => ({ counts: dropped(agreed).counts }), 60],
  [
    "the list lacks one that search and counts show",
    (agreed) => ({ list: look({ count: 6, ids: OTHER, at: SETTLED + agreed }) }),
    60,
  ],
  [
    "no route shows any of them",
    (agreed) => {
      const all = { count: 7, ids: ["x"], digest: SEVEN, rules: { "942100": 7 } };
      const nothing = look({ count: 0, ids: NONE, at: SETTLED + agreed });
      return { list: nothing, search: { ...nothing, lacks: all }, counts: { ...nothing, lacks: all } };
    },
    60,
  ],
])("where %s, the hour is sealed after looks have agreed for long enough", (_what, looksAfter, minutes) => {
  const after = (agreedMs: number) => judge(proven({ looks: looksAfter(agreedMs) }));
  expect(after(minutes * MINUTE_MS - 1)).toMatchObject({
    state: "open",
    lacking: expect.stringMatching(/Short$/),
  });
  expect(after(minutes * MINUTE_MS).state).toBe("sealed");
});

test("an event that no route shows any more is named in the evidence as withdrawn, one that the list shows is not", () => {
  const shown = judge(proven({ surplusCells: 1, looks: DROPPED }));
  expect(shown).toMatchObject({
    state: "sealed",
    evidence: { stored: { count: 7 }, search: { count: 5, lacks: LACKS }, counts: { surplusCells: 1 } },
  });
  expect(shown).not.toHaveProperty("evidence.withdrawn");
  const list = look({ count: 5, ids: FIVE, at: SETTLED + 10 * MINUTE_MS });
  const withdrawn = { count: 2, ids: ["x", "y"] };
  expect(judge(proven({ looks: { ...DROPPED, list } }))).toMatchObject({ evidence: { withdrawn } });
});

test("a list that shows every event but those of one feature proves the hour at once", () => {
  const list = look({ count: 5, ids: FIVE, unlisted: { features: ["bots"], count: 2, digest: TWO } });
  expect(judge(proven({ looks: { list } }))).toMatchObject({
    state: "sealed",
    evidence: { list: { unlisted: { features: ["bots"] } } },
  });
});

test("a contested value stops the seal for an hour, and then the evidence says so", () => {
  const stored = { ...STORED, contestedAt: SETTLED, revised: 2 };
  const search = look({ at: SETTLED + HOUR_MS });
  expect(judge(proven({ stored, looks: { search: { ...search, at: search.at - 1 } } })).state).toBe("open");
  expect(judge(proven({ stored, looks: { search } }))).toMatchObject({
    state: "sealed",
    evidence: { revised: 2, contestedSince: new Date(SETTLED).toISOString() },
  });
});

test("an hour without events needs two looks of each route an hour apart, or metrics that agree with its day", () => {
  const empty = (agreedMs: number) => {
    const seen = look({ count: 0, ids: NONE, at: SETTLED + agreedMs });
    return proven({
      stored: EMPTY,
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
  expect(explainOpen(SETTLED, empty(0), { settleMs: SETTLE_MS })).toContain(
    "a second look one hour after the first must confirm that",
  );
});

test("an hour without events whose second look would have come too late is a gap that nobody could have prevented", () => {
  const lost = START + 72 * HOUR_MS;
  const empty = (since: number) => {
    const seen = look({ count: 0, ids: NONE, at: since, since });
    return judge(
      proven({
        stored: EMPTY,
        storedCount: 0,
        looks: { list: undefined, search: seen, counts: seen } as never,
      }),
      {},
      lost + HOUR_MS,
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

test("a gap names why the zone's answers were held back, or that the platform keeps events for less", () => {
  const suspicion = "The search shows 3 events, and none of the events that it showed before.";
  const unproven = proven({ looks: { search: undefined } as never });
  expect(judge(unproven, { suspicion }, START + 73 * HOUR_MS)).toMatchObject({
    state: "gap",
    reason: `The platform's answers were held back: ${suspicion}`,
  });
  expect(judge(unproven, { keptMs: 48 * HOUR_MS }, START + 49 * HOUR_MS)).toMatchObject({
    state: "gap",
    reason: "The platform now keeps events for only 2 d.",
  });
  expect(judge(unproven, {}, START + 49 * HOUR_MS).state).toBe("open");
});

test("the list of a day that it no longer serves is not needed", () => {
  const now = startOfDay(START) + 3 * DAY_MS;
  const unlisted = proven({ looks: { list: undefined } as never });
  expect(judge(unlisted, {}, now)).toMatchObject({ state: "sealed", evidence: { list: null } });
  expect(judge(unlisted, {}, now - 1)).toEqual({ state: "open", lacking: "list" });
  expect(judge(proven({ looks: { ...DROPPED, list: undefined } as never }), {}, now).state).toBe("sealed");
});

test("counts of the metrics above every route are named in the evidence of the day's hours", () => {
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
  "%s becomes a gap with its reason once its last moment can no longer be asked for",
  (_what, changed, reason) => {
    const lost = START + 73 * HOUR_MS - 120_000 - 1;
    const hour = proven({ looks: { list: undefined, search: undefined } as never, ...changed });
    expect(judge(hour, {}, lost).state).toBe("open");
    expect(judge(hour, {}, lost + 1)).toMatchObject({
      state: "gap",
      reason: expect.stringMatching(reason),
      evidence: { from: "2026-11-20T10:00:00.000Z", to: "2026-11-20T11:00:00.000Z", stored: { count: 7 } },
    });
  },
);

test("a gap that lacks events counts the quarantined entries of its hour, of its day, and those without a time", () => {
  const unreadable = [
    { hour: START, day: "2026-11-20", entries: 1 },
    { hour: START + HOUR_MS, day: "2026-11-20", entries: 10 },
    { hour: null, day: "2026-11-20", entries: 100 },
    { hour: null, day: "2026-11-19", entries: 1_000 },
    { hour: null, day: null, entries: 10_000 },
  ];
  const hour = proven({ missingCells: 3 });
  expect(judge(hour, { unreadable }, START + 80 * HOUR_MS)).toMatchObject({
    state: "gap",
    reason:
      "The platform counted more events than Longwatch could copy, for 3 rules; 10,101 entries that may be of this hour are in quarantine.",
  });
});

test("only the zone's first hour is excused", () => {
  const lost = judge(
    proven({ searchedThrough: null, reconciledAt: null, stored: null }),
    {},
    START + 80 * HOUR_MS,
  );
  expect(lost).toMatchObject({ state: "gap" });
  expect(lost).not.toMatchObject({ reason: FIRST_WATCHED });
});

/** What every sealed hour has in common, without the rules of `findLacking`: nothing that a route shows or counts is missing. */
function isPlainlyProven(hour: CoveredHour, stored: HourContents): boolean {
  const { search, list, counts } = hour.looks;
  const settled = hour.startsAt + HOUR_MS + SETTLE_MS;
  const isListed = startOfDay(hour.startsAt) >= firstListedDay(NOW);
  if (stored.doubled + hour.missingCells > 0) return false;
  if (search === undefined || counts === undefined || Math.min(search.at, counts.at) < settled) return false;
  const isShown = [search, counts, ...(list === undefined || !isListed ? [] : [list])].every(
    (look) => look.count <= stored.count,
  );
  return isShown && search.count + (search.lacks?.count ?? 0) === stored.count;
}

test("whatever is recorded: sealed only if nothing shown or counted is missing, a gap only after the hour can no longer be asked for", () => {
  const contents = fc.record({
    count: fc.integer({ min: 0, max: 2 }),
    ids: fc.constantFrom("000000000000000a", "000000000000000b"),
    unresolved: fc.constantFrom(0, 0, 1),
    doubled: fc.constantFrom(0, 0, 1),
    contestedAt: fc.constantFrom(null, null, NOW),
    revised: fc.constant(0),
  });
  let sealed = 0;
  fc.assert(
    fc.property(anHour(), contents, (hour, stored) => {
      const { state } = judgeHour(NOW, { ...hour, stored, firstHour: 0 }, JUDGED_ZONE);
      if (state === "sealed") sealed++;
      const isExpired = hour.startsAt + HOUR_MS <= horizonAt(NOW);
      expect(state === "sealed" || state === (isExpired ? "gap" : "open")).toBe(true);
      expect(state !== "sealed" || isPlainlyProven(hour, stored)).toBe(true);
    }),
    { numRuns: 20_000 },
  );
  expect(sealed).toBeGreaterThan(0);
});

test("a reason that coverage prints once for several hours does not mention one hour", () => {
  for (const reason of Object.values(LACKING)) expect(reason).not.toMatch(/\b(it|its|this hour)\b/i);
});
