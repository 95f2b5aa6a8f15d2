import { expect, test } from "vitest";
import { z } from "zod";
import { createBell } from "../../src/queue/bell.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";
import type { Doorbell } from "../../src/queue/doorbell.ts";

const LOOK = { timeout: 20_000 };

interface Run {
  readonly payload: unknown;
  readonly signal: AbortSignal;
  end(error?: Error): void;
}

/** A job whose runs end when the test says so. */
function heldJob(name = "poll-events", timeoutMs = 60_000): { job: AnyJob; runs: Run[] } {
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

/** A bell over a store that hears, or does not, as the test says. */
function hang(jobs: readonly AnyJob[], isHeard: () => boolean) {
  const ids: string[] = [];
  const errors: string[] = [];
  const doorbell: Doorbell = {
    async ring(_job, _payload, id) {
      ids.push(id);
      return isHeard();
    },
    startWorkers() {},
    async close() {},
  };
  const bell = createBell({
    doorbell,
    jobs,
    onError: (job, error) => errors.push(`${job}: ${error.message}`),
  });
  return { bell, ids, errors };
}

test("a ring that the queue has heard does not run here", async () => {
  const { job, runs } = heldJob();
  const { bell } = hang([job], () => true);

  expect(await bell.ring("poll-events")).toBe(true);
  expect(runs).toHaveLength(0);
});

test("F26: no two rings share an id, and none is a number or holds a colon", async () => {
  const { job } = heldJob();
  const { bell, ids } = hang([job], () => true);
  for (let ring = 0; ring < 50; ring += 1) await bell.ring("poll-events");

  expect(new Set(ids).size).toBe(50);
  for (const id of ids) expect(id).toMatch(/^(?!\d+$)[^:]+$/);
});

test("F20: a ring that nobody heard runs here, with its payload", async () => {
  const { job, runs } = heldJob();
  const { bell } = hang([job], () => false);

  expect(await bell.ring("poll-events", { zoneId: 101 })).toBe(true);
  expect(runs.map(({ payload }) => payload)).toEqual([{ zoneId: 101 }]);
});

test("a ring for another role's job, with the queue gone, says that nobody heard it", async () => {
  const { bell } = hang([], () => false);

  expect(await bell.ring("deliver-alerts")).toBe(false);
});

test("however often it is rung meanwhile, a job runs once at a time and once more afterwards", async () => {
  const { job, runs } = heldJob();
  const { bell } = hang([job], () => false);
  for (let ring = 0; ring < 5; ring += 1) await bell.ring("poll-events");
  expect(runs).toHaveLength(1);

  runs[0]?.end();
  await expect.poll(() => runs.length, LOOK).toBe(2);
  runs[1]?.end();
  await bell.ring("poll-events", { zoneId: 9 });
  expect(runs.map(({ payload }) => payload)).toEqual([{}, {}, { zoneId: 9 }]);
});

test("jobs of different payloads run side by side", async () => {
  const { job, runs } = heldJob();
  const { bell } = hang([job], () => false);
  await bell.ring("poll-events", { zoneId: 101 });
  await bell.ring("poll-events", { zoneId: 102 });

  expect(runs).toHaveLength(2);
});

test("a run that fails is told, and the job can be rung again", async () => {
  const { job, runs } = heldJob();
  const { bell, errors } = hang([job], () => false);
  await bell.ring("poll-events");
  runs[0]?.end(new Error("no platform"));
  await expect.poll(() => errors, LOOK).toEqual(["poll-events: no platform"]);
  await bell.ring("poll-events");

  await expect.poll(() => runs.length, LOOK).toBe(2);
});

test("a payload that its schema refuses reaches no job here either", async () => {
  const { job, runs } = heldJob();
  const { bell, errors } = hang([job], () => false);
  await bell.ring("poll-events", { zoneId: "101; drop table" });

  await expect.poll(() => errors, LOOK).toHaveLength(1);
  expect(runs).toHaveLength(0);
});

test("a run here has the job's own deadline", async () => {
  const { job, runs } = heldJob("short", 1);
  const { bell } = hang([job], () => false);
  await bell.ring("short");

  await expect.poll(() => runs[0]?.signal.aborted, LOOK).toBe(true);
});

test("a stop aborts what runs here, waits for its end, and rings no more", async () => {
  const { job, runs } = heldJob();
  const { bell, ids, errors } = hang([job], () => false);
  await bell.ring("poll-events");
  await bell.ring("poll-events");
  runs[0]?.signal.addEventListener("abort", () => runs[0]?.end(new Error("stopped")));
  await bell.stop(60_000);

  expect(runs[0]?.signal.aborted).toBe(true);
  expect(errors).toEqual([]);
  expect(runs).toHaveLength(1);
  expect(await bell.ring("poll-events")).toBe(false);
  expect(ids).toHaveLength(2);
});

test("a stop does not wait for a job that never ends", async () => {
  const { job } = heldJob();
  const { bell } = hang([job], () => false);
  await bell.ring("poll-events");

  await expect(bell.stop(1)).resolves.toBeUndefined();
});
