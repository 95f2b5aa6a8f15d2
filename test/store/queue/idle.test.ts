import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { createStore, openJobQueue } from "./support/store.ts";

test("workers without a job ask Postgres nothing, keep their connections, and still run a job at once", async () => {
  const store = await createStore("postgres");
  onTestFinished(() => store.drop());
  const { job, runs } = recorder("idle");
  const jobQueue = openJobQueue(createBackend("postgres", store.url), [job], { lockMs: 600_000 });
  jobQueue.startWorkers();
  await jobQueue.enqueue(job.name, { zoneId: 101 }, "tick_a");
  await expect.poll(() => runs).toEqual([101]);
  const client = new pg.Client({ connectionString: store.url });
  await client.connect();
  onTestFinished(() => client.end());
  const look = async () =>
    (
      await client.query(`select pid, state_change from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() order by pid`)
    ).rows;
  // The worker that has just ended a job looks for another one first.
  await delay(1_000);
  const before = await look();

  // Longer than BullMQ's own wait of 5 s, and than the pool's own limit of 10 s for an idle connection.
  await delay(12_000);

  expect(await look()).toEqual(before);
  const enqueuedAt = performance.now();
  await jobQueue.enqueue(job.name, { zoneId: 102 }, "tick_b");
  await expect.poll(() => runs).toEqual([101, 102]);
  expect(performance.now() - enqueuedAt).toBeLessThan(5_000);
});
