import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createSchedule } from "#adapters/queue/schedule.ts";
import { leases } from "#db/schema/leases.ts";
import { claimDue } from "#db/service/leases.ts";
import { DAY_MS } from "#lib/units.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";

const LOOK = { timeout: 20_000 };
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
      everyMs: DAY_MS,
      isDue: async () => {
        const isDue = (await claimDue(database.db, [{ name, periodMs: DAY_MS }])).has(name);
        asked += 1;
        return isDue;
      },
      enqueue: async () => {
        enqueued += 1;
        return true;
      },
    };
    const schedule = createSchedule({ entries: [entry], onError() {} });
    onTestFinished(() => schedule.stop(0));
    schedule.start();
  };
  for (let replica = 0; replica < 5; replica += 1) start();
  await expect.poll(() => asked, LOOK).toBe(5);
  start();
  await expect.poll(() => asked, LOOK).toBe(6);
  return enqueued;
}

test("F5 F27: however many replicas and restarts, a period is rung once, and so is the next", async () => {
  expect(await startReplicas("tick.daily")).toBe(1);
  expect(await startReplicas("tick.daily")).toBe(0);
  await database.db.update(leases).set({ dueAt: sql`now()` });
  expect(await startReplicas("tick.daily")).toBe(1);
});
