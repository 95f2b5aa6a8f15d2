import { beforeAll, expect, test } from "vitest";
import { readSuspicion } from "../../db/coverage/zone-suspicions.ts";
import { storeSnapshot } from "../../db/detection/rule-metrics.ts";
import { judgeZoneMetrics } from "../../jobs/coverage/judge-metrics.ts";
import { judgeMetrics } from "../../src/coverage/judge-metrics.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/units.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { silent } from "../ingest/ingest-support.ts";
import { POLICY, SETTLE_MS } from "./some-hours.ts";

const ZONE = 101;
const DAY = "2026-11-16";
const DAY_START = Date.parse(DAY);
const FINAL = DAY_START + DAY_MS + SETTLE_MS;
/** The platform has forgotten every whole hour of the day, so that none can be proven again. */
const NOW = DAY_START + 4 * DAY_MS - HOUR_MS;

let database: MigratedDatabase;
beforeAll(async () => {
  database = await createMigratedDatabase();
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, state, sealed_at, evidence)
     select $1, hour, 'sealed', hour + interval '2 hours', '{}'
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

test("a count that stays above is accepted although another rule's count of the day still grows", async () => {
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
  // The metrics of a day that is not over say nothing, and are fetched again when it is.
  await fetch(DAY_START + HOUR_MS, { steady: 3, growing: 5 });
  expect((await judge(NOW)).accepted.size).toBe(0);
  expect(await readSuspicion(database.db, ZONE, "metrics")).toBeNull();
  const { rows } = await database.pool.query<{ due: Date }>("select due_at as due from rule_snapshots");
  expect(rows.map(({ due }) => due.getTime() - NOW)).toEqual([10 * MINUTE_MS, 10 * MINUTE_MS]);

  for (const [minutes, growing] of [
    [0, 5],
    [10, 6],
    [20, 7],
  ] as const) {
    await fetch(NOW + minutes * MINUTE_MS, { steady: 3, growing });
    await judge(NOW + minutes * MINUTE_MS);
  }
  const accepted = async () =>
    [...(await judge(NOW + 21 * MINUTE_MS)).accepted.values()].flat().map(({ ruleId }) => ruleId);
  expect(await accepted()).toEqual(["steady"]);
  expect(await readSuspicion(database.db, ZONE, "metrics")).toMatchObject({ clearedAt: null });

  await fetch(NOW + 25 * MINUTE_MS, { growing: 7 });
  await judge(NOW + 25 * MINUTE_MS);
  expect(await accepted()).toEqual(["steady"]);
  await fetch(NOW + 30 * MINUTE_MS, { growing: 7 });
  await judge(NOW + 30 * MINUTE_MS);
  expect(await accepted()).toEqual(["growing", "steady"]);
});
