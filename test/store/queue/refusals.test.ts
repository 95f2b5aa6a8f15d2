import { afterAll, beforeAll, expect, test } from "vitest";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { createStore, openJobQueue, type Store } from "./support/store.ts";

let store: Store;

beforeAll(async () => {
  store = await createStore("postgres");
});

afterAll(() => store.drop());

test.each([
  ["an id with a colon", "tick:1", {}],
  ["an id that is a number", "42", {}],
  ["a payload that carries content", "big", { log: "x".repeat(2_000) }],
])("%s is refused, said so, and not stored", async (_what, id, extra) => {
  const { job, runs } = recorder("refused");
  const jobQueue = openJobQueue(createBackend("postgres", store.url), [job]);
  jobQueue.startWorkers(["ingest"]);

  expect(await jobQueue.enqueue(job.name, { zoneId: 1, ...extra }, id)).toBe(false);
  expect(jobQueue.errors).toEqual([expect.stringMatching(/^enqueue refused: /)]);

  await jobQueue.enqueue(job.name, { zoneId: 2 }, "accepted");
  await expect.poll(() => runs).toEqual([2]);
});

test("F26: after a job that failed for good the next enqueued job runs", async () => {
  const { job, runs } = recorder("failing", async (run) => {
    if (run === 1) throw Object.assign(new Error("no"), { disposition: "give-up" });
  });
  const jobQueue = openJobQueue(createBackend("postgres", store.url), [job]);
  jobQueue.startWorkers(["ingest"]);
  await jobQueue.enqueue(job.name, { zoneId: 1 }, "failing_1");
  await expect.poll(() => runs).toEqual([1]);

  await jobQueue.enqueue(job.name, { zoneId: 2 }, "failing_2");

  await expect.poll(() => runs).toEqual([1, 2]);
});

test("enqueueing an unknown job is a mistake of the caller", async () => {
  const jobQueue = openJobQueue(createBackend("postgres", store.url), []);

  await expect(jobQueue.enqueue("no-such-job", {}, "a")).rejects.toThrow("no job is called no-such-job");
});
