import { expect, test } from "vitest";
import { z } from "zod";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import { createEnqueuer } from "#store/queue/enqueuer.ts";
import type { JobQueue } from "#store/queue/job-queue.ts";

const WAIT = { timeout: 20_000 };

interface Run {
  readonly payload: unknown;
  readonly signal: AbortSignal;
  end(error?: Error): void;
}

/** A job whose runs end when the test says so. */
function blockedJob(name = "poll-events", timeoutMs = 60_000): { job: AnyJob; runs: Run[] } {
  const runs: Run[] = [];
  const job = defineJob({
    name,
    queue: "ingest",
    payload: z.object({ zoneId: z.number().optional() }),
    attempts: 1,
    timeoutMs,
    run(payload, signal) {
      return new Promise<void>((resolve, reject) => {
        runs.push({ payload, signal, end: (error) => (error === undefined ? resolve() : reject(error)) });
      });
    },
  });
  return { job, runs };
}

/** Returns an enqueuer over a store that answers or fails, as the test says. */
function openEnqueuer(jobs: readonly AnyJob[], isAdded: () => boolean) {
  const ids: string[] = [];
  const errors: string[] = [];
  const jobQueue: JobQueue = {
    async enqueue(_job, _payload, id) {
      ids.push(id);
      return isAdded();
    },
    startWorkers() {},
    async close() {},
  };
  const enqueuer = createEnqueuer({
    jobQueue,
    jobs,
    onError: (job, error) => errors.push(`${job}: ${error.message}`),
  });
  return { enqueuer, ids, errors };
}

test("a job that the queue has accepted does not run here", async () => {
  const { job, runs } = blockedJob();
  const { enqueuer } = openEnqueuer([job], () => true);

  expect(await enqueuer.enqueue("poll-events")).toBe(true);
  expect(runs).toHaveLength(0);
});

test("F26: no two enqueued jobs share an id, and no id is a number or contains a colon", async () => {
  const { job } = blockedJob();
  const { enqueuer, ids } = openEnqueuer([job], () => true);
  for (let enqueue = 0; enqueue < 50; enqueue += 1) await enqueuer.enqueue("poll-events");

  expect(new Set(ids).size).toBe(50);
  for (const id of ids) expect(id).toMatch(/^(?!\d+$)[^:]+$/);
});

test("F20: a job that the queue did not accept runs in this process, with its payload", async () => {
  const { job, runs } = blockedJob();
  const { enqueuer } = openEnqueuer([job], () => false);

  expect(await enqueuer.enqueue("poll-events", { zoneId: 101 })).toBe(true);
  expect(runs.map(({ payload }) => payload)).toEqual([{ zoneId: 101 }]);
});

test("a job with a delay that the queue has not accepted runs here after the delay, and not after a stop", async () => {
  const { job, runs } = blockedJob();
  const { enqueuer } = openEnqueuer([job], () => false);
  await enqueuer.enqueue("poll-events", { zoneId: 101 }, 50);
  await enqueuer.enqueue("poll-events", { zoneId: 102 }, 60_000);
  expect(runs).toHaveLength(0);
  await expect.poll(() => runs.length, WAIT).toBe(1);
  runs[0]?.end();
  await enqueuer.stop(1_000);

  expect(runs.map(({ payload }) => payload)).toEqual([{ zoneId: 101 }]);
});

test("enqueueing another role's job without the queue returns false", async () => {
  const { enqueuer } = openEnqueuer([], () => false);

  expect(await enqueuer.enqueue("deliver-alerts")).toBe(false);
});

test("however often it is enqueued meanwhile, a job runs once at a time and once more afterwards", async () => {
  const { job, runs } = blockedJob();
  const { enqueuer } = openEnqueuer([job], () => false);
  for (let enqueue = 0; enqueue < 5; enqueue += 1) await enqueuer.enqueue("poll-events");
  expect(runs).toHaveLength(1);

  runs[0]?.end();
  await expect.poll(() => runs.length, WAIT).toBe(2);
  runs[1]?.end();
  await enqueuer.enqueue("poll-events", { zoneId: 9 });
  expect(runs.map(({ payload }) => payload)).toEqual([{}, {}, { zoneId: 9 }]);
});

test("jobs of different payloads run side by side", async () => {
  const { job, runs } = blockedJob();
  const { enqueuer } = openEnqueuer([job], () => false);
  await enqueuer.enqueue("poll-events", { zoneId: 101 });
  await enqueuer.enqueue("poll-events", { zoneId: 102 });

  expect(runs).toHaveLength(2);
});

test("a failed run is reported, and the job can be enqueued again", async () => {
  const { job, runs } = blockedJob();
  const { enqueuer, errors } = openEnqueuer([job], () => false);
  await enqueuer.enqueue("poll-events");
  runs[0]?.end(new Error("no platform"));
  await expect.poll(() => errors, WAIT).toEqual(["poll-events: no platform"]);
  await enqueuer.enqueue("poll-events");

  await expect.poll(() => runs.length, WAIT).toBe(2);
});

test("a payload that its schema refuses reaches no job here either", async () => {
  const { job, runs } = blockedJob();
  const { enqueuer, errors } = openEnqueuer([job], () => false);
  await enqueuer.enqueue("poll-events", { zoneId: "101; drop table" });

  await expect.poll(() => errors, WAIT).toHaveLength(1);
  expect(runs).toHaveLength(0);
});

test("a run here has the job's own deadline", async () => {
  const { job, runs } = blockedJob("short", 1);
  const { enqueuer } = openEnqueuer([job], () => false);
  await enqueuer.enqueue("short");

  await expect.poll(() => runs[0]?.signal.aborted, WAIT).toBe(true);
});

test("a stop aborts the running jobs, waits for their end, and enqueues no more", async () => {
  const { job, runs } = blockedJob();
  const { enqueuer, ids, errors } = openEnqueuer([job], () => false);
  await enqueuer.enqueue("poll-events");
  await enqueuer.enqueue("poll-events");
  runs[0]?.signal.addEventListener("abort", () => runs[0]?.end(new Error("stopped")));
  await enqueuer.stop(60_000);

  expect(runs[0]?.signal.aborted).toBe(true);
  expect(errors).toEqual([]);
  expect(runs).toHaveLength(1);
  expect(await enqueuer.enqueue("poll-events")).toBe(false);
  expect(ids).toHaveLength(2);
});

test("a stop does not wait for a job that never ends", async () => {
  const { job } = blockedJob();
  const { enqueuer } = openEnqueuer([job], () => false);
  await enqueuer.enqueue("poll-events");

  await expect(enqueuer.stop(1)).resolves.toBeUndefined();
});
