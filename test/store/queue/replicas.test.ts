import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { claimRuns } from "#db/postgres/leases.ts";
import { leases } from "#db/schema/service.ts";
import type { CronRun } from "#lib/cron.ts";
import { createSchedule } from "#store/queue/schedule.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";

const WAIT = { timeout: 20_000 };
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

/** Starts five replicas at once and a sixth later; returns how often they enqueued. */
async function startReplicas(name: string): Promise<number> {
  let asked = 0;
  let enqueued = 0;
  const start = () => {
    const entry = {
      name,
      expression: "0 0 0 1 1 *",
      run: async (run: CronRun) => {
        const isClaimed = (await claimRuns(database.db, [{ name, ...run }])).has(name);
        asked += 1;
        if (isClaimed) enqueued += 1;
      },
    };
    const schedule = createSchedule({ entries: [entry], onError() {} });
    onTestFinished(() => schedule.stop(0));
    schedule.start();
  };
  for (let replica = 0; replica < 5; replica += 1) start();
  await expect.poll(() => asked, WAIT).toBe(5);
  start();
  await expect.poll(() => asked, WAIT).toBe(6);
  return enqueued;
}

test("F5 F27: however many replicas and restarts, a run is enqueued once, and so is the next", async () => {
  expect(await startReplicas("tick.yearly")).toBe(1);
  expect(await startReplicas("tick.yearly")).toBe(0);
  await database.db.update(leases).set({ dueAt: new Date() }).where(eq(leases.name, "tick.yearly"));
  expect(await startReplicas("tick.yearly")).toBe(1);
});

test("F5: replicas whose expression fires every second enqueue each run once", async () => {
  const name = "tick.secondly";
  const claimed: number[] = [];
  for (let replica = 0; replica < 3; replica += 1) {
    const run = async (run: CronRun) => {
      if ((await claimRuns(database.db, [{ name, ...run }])).has(name)) claimed.push(run.at);
    };
    const entries = [{ name, expression: "* * * * * *", run }];
    const schedule = createSchedule({ entries, onError() {} });
    onTestFinished(() => schedule.stop(0));
    schedule.start();
  }
  await expect.poll(() => claimed.length, WAIT).toBeGreaterThan(3);
  // A replica that starts claims its own time. All others are the whole seconds that the expression names.
  const named = claimed.filter((at) => at % 1_000 === 0);
  expect(named.length).toBeGreaterThan(1);
  expect(named).toHaveLength(new Set(named).size);
});
