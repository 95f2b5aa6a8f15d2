import fc from "fast-check";
import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { NOW } from "../emulator/support.ts";
import { KINDS, type Lie, type LieKind, ROUTES } from "../support/liar/lie.ts";
import { draws } from "../support/sample.ts";
import { openLyingWorld } from "./lying-world.ts";
import { ZONE } from "./replica.ts";

/** Fixed, so that the gate gives the same result every time. For other lies: `TEST_SEED=n TEST_RUNS=20`. */
const SEED = Number(process.env["TEST_SEED"] ?? 23);
const RUNS = Number(process.env["TEST_RUNS"] ?? draws(1, 4));
const BUDGET_MS = 900_000;

/** The jobs send no export request. */
const ASKED = ROUTES.filter((route) => route !== "export");

const OTHER_ZONE = 102;
const SHIFTS = [-1_500, -700_000, 90 * MINUTE_MS, -90 * MINUTE_MS];
const minutesFromNow = (minutes: number) => NOW + minutes * MINUTE_MS;
/** Some lies begin with the first start. */
const told = fc
  .record({ begins: fc.constantFrom(0, 0, 20, 60), lasts: fc.integer({ min: 5, max: 90 }) })
  .map(({ begins, lasts }) => ({ begins: minutesFromNow(begins), ends: minutesFromNow(begins + lasts) }));

const falsehood = fc.record({
  // Kinds that hide events are drawn more often than the others.
  kind: fc.constantFrom(...KINDS, "short" as const, "short" as const, "empty" as const),
  routes: fc.subarray(ASKED, { minLength: 1 }),
  share: fc.constantFrom(0.05, 0.3, 1),
  // Lies of one salt hide the same events.
  salt: fc.constantFrom("one", "two"),
  events: fc.constantFrom({}, { from: NOW - 3 * HOUR_MS }, { to: NOW - 2 * HOUR_MS }),
  shiftMs: fc.constantFrom(...SHIFTS),
  otherZone: fc.constant(OTHER_ZONE),
  fields: fc.constantFrom({ ruleId: "999001" }, { ip: "192.0.2.66", url: "/false" }),
  keptMs: fc.constant(4 * HOUR_MS),
  broken: fc.constantFrom("logId" as const, "timestamp" as const),
});
/** Kinds of which one event is drawn as often as a share of them. */
const FEW: readonly LieKind[] = ["phantom", "unreadable", "wrongValue"];
const lie: fc.Arbitrary<Lie> = fc.tuple(falsehood, told, fc.boolean()).map(([what, when, isFew]) => ({
  ...what,
  ...when,
  ...(isFew && FEW.includes(what.kind) ? { count: 1 } : {}),
}));

const script = fc.record({
  lies: fc.array(lie, { minLength: 1, maxLength: 4 }),
  // Minutes between two rounds of every job.
  rounds: fc.array(fc.constantFrom(1, 6, 16, 30), { minLength: 5, maxLength: 8 }),
  seed: fc.nat({ max: 999 }),
});

test("however the platform's routes lie, no sealed hour lacks an event that a route has shown or counted, and every hour is repaired afterwards", {
  timeout: BUDGET_MS,
}, async () => {
  console.log(`lies follow from TEST_SEED=${SEED}`);
  await fc.assert(
    fc.asyncProperty(script, async ({ lies, rounds, seed }) => {
      const world = await openLyingWorld({
        zones: [ZONE, OTHER_ZONE],
        // Of both zones together.
        eventsPerSecond: 0.024,
        historyHours: 6,
        seed: String(seed),
        lateShare: 0.1,
      });
      for (const one of lies) world.liar.tell({ ...one, zones: [ZONE] });
      // Every round checks the oracle after every job.
      for (const minutes of rounds) await world.round(minutes * MINUTE_MS);
      expect(await world.endLies()).toEqual([]);
    }),
    { seed: SEED, numRuns: RUNS, endOnFailure: process.env["TEST_RUNS"] === undefined },
  );
});
