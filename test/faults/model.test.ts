import fc from "fast-check";
import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import { horizonAt } from "#model/horizon.ts";
import { draws } from "../support/sample.ts";
import { anyAction, openModel } from "./pipeline-model.ts";

/** Number of scripts. fast-check prints the seed, the path and the actions of a failure; TEST_SEED=n draws it again. */
const RUNS = Number(process.env["TEST_RUNS"] ?? draws(1, 4));
const BUDGET_MS = 600_000;

const script = fc.array(anyAction, { minLength: 20, maxLength: 45 });
// Shrinking creates a database for every try. That is worth it by hand, but too slow for the gate.
const settings = { numRuns: RUNS, endOnFailure: process.env["TEST_RUNS"] === undefined };

test("for random faults in any order, every promise holds after every step; when the faults end, every event is stored, counted and notified within two hours", {
  timeout: BUDGET_MS,
}, async () => {
  await fc.assert(
    fc.asyncProperty(script, fc.nat({ max: 999 }), async (actions, seed) => {
      const model = await openModel(seed);
      for (const action of actions) {
        await model.act(action);
        expect(await model.inspect(), `after ${JSON.stringify(action)}`).toEqual([]);
      }
      await model.calmDown();
      expect(await model.inspect(true)).toEqual([]);
      const now = model.world.emulator.now();
      const { rows } = await model.world.database.pool.query(
        `select (select count(*) from dirty_buckets)::int as stale,
           (select count(*) from notifications where state in ('pending', 'sending'))::int as untold,
           (select count(*) from differing_cells where resolved_at is null)::int as differing,
           (select coalesce(json_agg(starts_at), '[]') from coverage_windows
            where state = 'open' and starts_at < $1
              and not (starts_at < $2 and starts_at + interval '80 minutes' >= $2)) as undecided`,
        // An hour that the platform has begun to forget is decided once it has forgotten it.
        [new Date(now - 80 * MINUTE_MS), new Date(horizonAt(now))],
      );
      expect(rows).toEqual([{ stale: 0, untold: 0, differing: 0, undecided: [] }]);
      const { rows: told } = await model.world.database.pool.query<{ key: string }>(
        "select alert_id || ' ' || transition as key from notifications where state = 'delivered'",
      );
      expect(told.map(({ key }) => key).filter((key) => !model.sent.includes(key))).toEqual([]);
    }),
    settings,
  );
});
