import fc from "fast-check";
import { HOUR_MS } from "#lib/units.ts";
import type { CoveredHour, HourLooks, Look } from "#model/covered-hour.ts";
import { KEPT_MS, startOfHour } from "#model/horizon.ts";
import type { JudgedZone } from "#proof/rules/judge-hour.ts";

export const NOW = Date.UTC(2026, 10, 20, 15, 30);
export const SETTLE_MS = 15 * 60_000;
export const POLICY = { settleMs: SETTLE_MS, keptMs: KEPT_MS, contested: new Map<number, number>() };
/** A zone that nothing is wrong with. */
export const JUDGED_ZONE: JudgedZone = {
  settleMs: SETTLE_MS,
  suspicion: null,
  keptMs: KEPT_MS,
  confirmedDays: new Set(),
  metricsAbove: new Map(),
};

/** An open hour of which nothing is known but what is given. */
export function openHour(startsAt: number, known: Partial<CoveredHour> = {}): CoveredHour {
  return {
    startsAt,
    state: "open",
    searchedThrough: null,
    lastNewAt: null,
    closingSearchAt: null,
    reconciledAt: null,
    upstreamCount: null,
    storedCount: 0,
    missingCells: 0,
    surplusCells: 0,
    reopenedAt: null,
    reopenReason: null,
    proofFrom: null,
    unresolvedSince: null,
    looks: {},
    ...known,
  };
}

/** Times around the moment at which the hour settles, often exactly there. */
function someTime(startsAt: number) {
  const settledAt = startsAt + HOUR_MS + SETTLE_MS;
  const near = fc.constantFrom(-1, 0, 1, 2).map((ms) => settledAt + ms);
  return fc.option(fc.oneof(near, fc.integer({ min: startsAt, max: settledAt + 3 * HOUR_MS })), {
    nil: null,
  });
}

function someLook(startsAt: number): fc.Arbitrary<Look> {
  const settledAt = startsAt + HOUR_MS + SETTLE_MS;
  return fc.record(
    {
      at: fc.oneof(
        fc.constantFrom(-1, 0, 1, 2).map((ms) => settledAt + ms),
        fc.integer({ min: startsAt, max: settledAt + 3 * HOUR_MS }),
      ),
      since: fc.constantFrom(startsAt, settledAt),
      pages: fc.constant(1),
      count: fc.integer({ min: 0, max: 2 }),
      ids: fc.constantFrom("000000000000000a", "000000000000000b"),
      lacks: fc.constantFrom(
        { count: 1, ids: ["x"], digest: "0000000000000001", rules: { "1": 1 } },
        { count: 2, ids: ["x", "y"], digest: "0000000000000003", rules: { "1": 2 } },
      ),
    },
    { requiredKeys: ["at", "since", "pages", "count", "ids"] },
  );
}

function someLooks(startsAt: number): fc.Arbitrary<HourLooks> {
  const look = someLook(startsAt);
  return fc.record({ list: look, search: look, counts: look }, { requiredKeys: [] });
}

/** Whatever may be recorded of an hour that began up to `hoursBack` ago. */
export function anHour(hoursBack = 76): fc.Arbitrary<CoveredHour> {
  return fc.integer({ min: 0, max: hoursBack }).chain((back) => {
    const startsAt = startOfHour(NOW) - back * HOUR_MS;
    const few = fc.integer({ min: 0, max: 2 });
    return fc.record({
      startsAt: fc.constant(startsAt),
      state: fc.constantFrom("open", "open", "open", "sealed", "gap"),
      searchedThrough: fc.constantFrom(null, startsAt + HOUR_MS - 1, startsAt + HOUR_MS, startsAt + HOUR_MS),
      lastNewAt: someTime(startsAt),
      closingSearchAt: someTime(startsAt),
      reconciledAt: someTime(startsAt),
      upstreamCount: fc.option(few, { nil: null }),
      storedCount: few,
      missingCells: fc.constantFrom(0, 0, 1),
      surplusCells: fc.constantFrom(0, 0, 1),
      reopenedAt: fc.constantFrom(null, startsAt + 2 * HOUR_MS),
      reopenReason: fc.constant(null),
      proofFrom: fc.constantFrom(null, null, startsAt + 2 * HOUR_MS),
      unresolvedSince: fc.constant(null),
      looks: someLooks(startsAt),
    });
  });
}
