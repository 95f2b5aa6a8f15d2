import fc from "fast-check";
import { expect, test } from "vitest";
import { type PassState, planPass } from "#ingest/rules/plan-pass.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { agreedFor, nextLook } from "#model/covered-hour.ts";
import { startOfDay } from "#model/horizon.ts";
import { compareCounts } from "#proof/rules/compare-counts.ts";
import { AGREE_MS, settledAt } from "#proof/rules/hour-proof.ts";
import { digestIds } from "#proof/rules/id-digest.ts";
import { countDeficits, findChange, isAsSealed, toCountsLook } from "#proof/rules/judge-counts.ts";
import { judgeHour } from "#proof/rules/judge-hour.ts";
import { planClosingSearch } from "#proof/rules/plan-comparison.ts";
import { JUDGED_ZONE, openHour, POLICY, SETTLE_MS } from "./some-hours.ts";

const START = Date.UTC(2026, 10, 20, 6);
const TICK_MS = 5 * MINUTE_MS;
const RULE = "1";
const PASSES = {
  settleMs: SETTLE_MS,
  fullEveryMs: 15 * MINUTE_MS,
  idleFullEveryMs: HOUR_MS,
  shortEveryMs: 5 * MINUTE_MS,
};

/** What a route may show of the hour: all events, all but one, none, one more. */
const SHOWN = [["a", "b", "c"], ["a", "b"], [], ["a", "b", "c", "d"]] as const;
type Shown = (typeof SHOWN)[number];

interface Step {
  readonly search: Shown;
  readonly list: Shown;
  readonly counts: Shown;
  readonly minutes: number;
}

/** An hour that the jobs copy and prove, without database and platform. Every event that a route shows is stored. */
function createHour() {
  const stored = new Set<string>();
  const resolved = new Set<string>();
  let hour = openHour(START, { searchedThrough: START + HOUR_MS });
  let pass: PassState | null = null;
  let counted = 0;

  function store(shown: Shown, at: number): number {
    const before = stored.size;
    for (const id of shown) stored.add(id);
    if (stored.size > before) hour = { ...hour, state: "open", storedCount: stored.size, lastNewAt: at + 1 };
    return stored.size - before;
  }

  function search(shown: Shown, at: number): void {
    if (planClosingSearch(at, [hour], POLICY) === null) return;
    store(shown, at);
    for (const id of shown) resolved.add(id);
    const left = [...stored].filter((id) => !(shown as readonly string[]).includes(id));
    const count = left.length;
    const lacks = { count, ids: left, digest: digestIds(left), rules: { [RULE]: count } };
    const seen = {
      at,
      pages: 1,
      count: shown.length,
      ids: digestIds(shown),
      ...(count > 0 ? { lacks } : {}),
    };
    hour = {
      ...hour,
      closingSearchAt: at,
      looks: { ...hour.looks, search: nextLook(hour.looks.search, seen) },
    };
  }

  function list(shown: Shown, at: number): void {
    const plan = planPass(at, { dayStart: startOfDay(START), hours: [hour] }, pass, PASSES);
    if (plan === null) return;
    const newEntries = store(shown, at);
    const ended = { startedAt: at, newEntries };
    if (plan === "short") {
      pass = { ...(pass as PassState), ...ended, passResult: "short" };
      return;
    }
    const quietPassStartedAt = newEntries === 0 ? at : (pass?.quietPassStartedAt ?? null);
    pass = { ...ended, fullPassStartedAt: at, quietPassStartedAt, passResult: "full" };
    const seen = { at, pages: 1, count: shown.length, ids: digestIds(shown) };
    hour = { ...hour, looks: { ...hour.looks, list: nextLook(hour.looks.list, seen) } };
  }

  /** Compares the counts of the platform with the stored events, and repairs the hour by a search if events are missing. */
  function compare({ counts, search: searched }: Step, at: number): void {
    const cells = (count: number) => new Map([[START, new Map(count > 0 ? [[RULE, count]] : [])]]);
    const upstream = cells(counts.length);
    const [compared] = compareCounts([START], upstream, cells(stored.size));
    if (compared === undefined || (hour.lastNewAt ?? 0) >= at) return;
    counted = counts.length;
    if (hour.state === "sealed" && isAsSealed(hour, compared, upstream)) return;
    if (hour.state === "sealed") hour = { ...hour, state: "open", proofFrom: at };
    const look = nextLook(hour.looks.counts, toCountsLook(compared, upstream, at));
    const from = Math.max(hour.proofFrom ?? 0, findChange(hour, look) ?? 0);
    const missingCells = compared.differing.length > 0 && countDeficits(compared).count === 0 ? 1 : 0;
    hour = {
      ...hour,
      reconciledAt: at,
      missingCells,
      proofFrom: from === 0 ? null : from,
      looks: { ...hour.looks, counts: look },
    };
    if (missingCells > 0) store(searched, at + 1);
  }

  function seal(now: number): void {
    if (hour.state !== "open") return;
    const contents = {
      count: stored.size,
      ids: digestIds(stored),
      unresolved: stored.size - resolved.size,
      doubled: 0,
      contestedAt: null,
      revised: 0,
    };
    const judged = { ...hour, stored: contents, firstHour: START - 48 * HOUR_MS };
    const { state } = judgeHour(now, judged, JUDGED_ZONE);
    if (state !== "sealed") return;
    hour = { ...hour, state };
    // No false seal: everything that the routes show is stored, and what they lack they have lacked in agreeing looks.
    expect(counted).toBeLessThanOrEqual(stored.size);
    for (const look of [hour.looks.search, hour.looks.list, hour.looks.counts]) {
      expect(look?.at).toBeGreaterThanOrEqual(settledAt(hour, SETTLE_MS));
      expect(look?.count).toBeLessThanOrEqual(stored.size);
    }
    for (const look of [hour.looks.search, hour.looks.counts])
      if (look !== undefined && look.count < stored.size)
        expect(agreedFor(look)).toBeGreaterThanOrEqual(AGREE_MS);
  }

  return {
    run(now: number, step: Step): void {
      search(step.search, now);
      list(step.list, now);
      compare(step, now);
      seal(now + 2);
    },
    read: () => hour,
  };
}

/** Runs the steps, and then one truth on all routes for two hours; returns the hour. */
function runHistory(steps: readonly Step[], truth: Shown) {
  const hour = createHour();
  let now = settledAt({ startsAt: START }, SETTLE_MS);
  const last = { search: truth, list: truth, counts: truth, minutes: 120 };
  for (const step of [...steps, last])
    for (const end = now + step.minutes * MINUTE_MS; now < end; now += TICK_MS) hour.run(now, step);
  return hour.read();
}

const MINUTES = [5, 20, 60] as const;
const combinations = SHOWN.flatMap((search) =>
  SHOWN.flatMap((list) => SHOWN.map((counts) => ({ search, list, counts }))),
);

test("an hour is sealed after two hours of one truth, whatever one step of answers came before", () => {
  const open = combinations.flatMap((routes) =>
    MINUTES.flatMap((minutes) =>
      SHOWN.flatMap((truth) => {
        const { state, looks } = runHistory([{ ...routes, minutes }], truth);
        return state === "sealed" ? [] : [JSON.stringify({ routes, minutes, truth, looks })];
      }),
    ),
  );
  expect(open.slice(0, 1)).toEqual([]);
});

test("an hour is sealed after two hours of one truth, whatever several steps of answers came before", () => {
  const shown = fc.constantFrom(...SHOWN);
  const step = fc.record({
    search: shown,
    list: shown,
    counts: shown,
    minutes: fc.integer({ min: 1, max: 12 }).map((ticks) => 5 * ticks),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 2, maxLength: 5 }), shown, (steps, truth) => {
      expect(runHistory(steps, truth).state).toBe("sealed");
    }),
    { numRuns: 600 },
  );
});
