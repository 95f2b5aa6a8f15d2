import { beforeAll, expect, test } from "vitest";
import { storeSnapshot } from "#db/detection/rule-metrics.ts";
import { readProvenDays } from "#db/proof/horizons.ts";
import { judgeZoneMetrics } from "#jobs/proof/seal-windows.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { judgeMetrics } from "#proof/rules/judge-counts.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { silent } from "../ingest/ingest-support.ts";
import { POLICY, SETTLE_MS } from "./some-hours.ts";

const ZONE = 101;
const DAY = "2026-11-16";
const DAY_START = Date.parse(DAY);
const FINAL = DAY_START + DAY_MS + SETTLE_MS;
/** The platform has forgotten the first half of the day. */
const NOW = DAY_START + 3.5 * DAY_MS;

let database: MigratedDatabase;
beforeAll(async () => {
  database = await createMigratedDatabase();
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, searched_through, state, sealed_at, evidence)
     select $1, hour, hour + interval '1 hour', 'sealed', hour + interval '2 hours', '{}'
     from generate_series($2::timestamptz, $2::timestamptz + interval '23 hours', interval '1 hour') hour`,
    [ZONE, `${DAY}T00:00:00Z`],
  );
  return () => database.drop();
});

test("a count above the stored one is early until it is fetched a settle time after its day", () => {
  const count = { day: DAY, ruleId: "a", platform: 2, stored: 1, fetchedAt: FINAL - 1 };
  expect(judgeMetrics([count], POLICY)).toMatchObject({ above: [], early: [count] });
  const final = { ...count, fetchedAt: FINAL };
  expect(judgeMetrics([final], POLICY)).toMatchObject({ above: [final], early: [] });
});

test("a day is proven anew once for a count that stays above, and ever more rarely for one that grows", async () => {
  const fetch = (at: number, totals: Readonly<Record<string, number>>) =>
    Promise.all(
      Object.entries(totals).map(([ruleId, total]) =>
        storeSnapshot(database.db, {
          zoneId: ZONE,
          ruleId,
          askedAtMs: at,
          dueAtMs: NOW + DAY_MS,
          errorCode: null,
          days: [{ day: DAY, total, blocked: total, logged: 0, challenged: 0 }],
        }),
      ),
    );
  const judge = (now: number) => judgeZoneMetrics({ database, log: silent, settleMs: SETTLE_MS }, ZONE, now);
  const proofs = async () => (await readProvenDays(database.db, ZONE))[DAY]?.proofs ?? 0;
  // The metrics of a day that is not over say nothing, and are fetched again when it is.
  await fetch(DAY_START + HOUR_MS, { steady: 3, growing: 5 });
  expect((await judge(NOW)).above.size).toBe(0);
  const { rows } = await database.pool.query<{ due: Date }>("select due_at as due from rule_snapshots");
  expect(rows.map(({ due }) => due.getTime() - NOW)).toEqual([10 * MINUTE_MS, 10 * MINUTE_MS]);

  const after: [minutes: number, proofs: number][] = [];
  for (let minutes = 0, growing = 5; minutes <= 400; minutes += 10, growing++) {
    await fetch(NOW + minutes * MINUTE_MS, { steady: 3, growing });
    const { above } = await judge(NOW + minutes * MINUTE_MS);
    expect([...above.values()].flat().map(({ ruleId }) => ruleId)).toEqual(["growing", "steady"]);
    const count = await proofs();
    if (count !== after.at(-1)?.[1]) after.push([minutes, count]);
  }
  expect(after).toEqual([
    [0, 1],
    [60, 2],
    [180, 3],
  ]);
});
