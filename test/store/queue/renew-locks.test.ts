import pg from "pg";
import { expect, test } from "vitest";
import { ServiceError } from "#lib/errors.ts";
import { atEnd } from "#test/support/at-end.ts";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { createStore, openJobQueue } from "./support/store.ts";

class Busy extends ServiceError {
  readonly code = "TEST";
  readonly disposition = "wait";
  override readonly waitMs = 50;
}

const WAIT = { timeout: 30_000 };

/** A job whose first run ends while a session of the test holds its row, so that what follows for the row waits in turn. */
async function openHeldJob() {
  const store = await createStore("postgres");
  atEnd(() => store.drop());
  const [holder, watcher] = [new pg.Client(store.url), new pg.Client(store.url)];
  for (const client of [holder, watcher]) {
    await client.connect();
    atEnd(() => client.end());
  }
  const { job, runs } = recorder("held", async (run) => {
    if (run > 1) return;
    await holder.query("begin");
    await holder.query("select from bullmq.job where id = 'tick_a' for update");
    throw new Busy("asked to wait");
  });
  const jobQueue = openJobQueue(createBackend("postgres", store.url), [job], { lockMs: 4_000 });
  jobQueue.startWorkers(["ingest"]);
  await jobQueue.enqueue(job.name, { zoneId: 101 }, "tick_a");
  const countWaiting = async () =>
    (
      await watcher.query(`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`)
    ).rowCount;
  return { jobQueue, runs, countWaiting, letGo: () => holder.query("commit") };
}

test("a job whose lock is renewed while the job is put off reports no failed renewal", async () => {
  const { jobQueue, runs, countWaiting, letGo } = await openHeldJob();
  // The job is put off, then its lock is renewed.
  await expect.poll(countWaiting, WAIT).toBe(2);

  await letGo();

  await expect.poll(countWaiting, WAIT).toBe(0);
  await expect.poll(() => runs, WAIT).toEqual([101, 101]);
  expect(jobQueue.errors).toEqual([]);
});
