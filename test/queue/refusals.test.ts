import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { createStore, KINDS, openJobQueue, type Store } from "./support/store.ts";

const LOOK = { timeout: 20_000 };

describe.each(KINDS.map((row) => [row.name, row] as const))("%s", (_name, { kind, skipped }) => {
  let store: Store;

  beforeAll(async () => {
    if (!skipped) store = await createStore(kind);
  });

  afterAll(() => (skipped ? undefined : store.drop()));

  test.skipIf(skipped).each([
    ["an id with a colon", "tick:1", {}],
    ["an id that is a number", "42", {}],
    ["a payload that carries content", "big", { log: "x".repeat(2_000) }],
  ])("%s is refused, said so, and not stored", async (_what, id, extra) => {
    const { job, runs } = recorder("refused");
    const jobQueue = openJobQueue(createBackend(kind, store.url), [job]);
    jobQueue.startWorkers(["ingest"]);

    expect(await jobQueue.enqueue(job.name, { zoneId: 1, ...extra }, id)).toBe(false);
    expect(jobQueue.errors).toEqual([expect.stringMatching(/^enqueue refused: /)]);

    await jobQueue.enqueue(job.name, { zoneId: 2 }, "accepted");
    await expect.poll(() => runs, LOOK).toEqual([2]);
  });

  test.skipIf(skipped)("F26: after a job that failed for good the next enqueued job runs", async () => {
    const { job, runs } = recorder("failing", async (run) => {
      if (run === 1) throw Object.assign(new Error("no"), { disposition: "give-up" });
    });
    const jobQueue = openJobQueue(createBackend(kind, store.url), [job]);
    jobQueue.startWorkers(["ingest"]);
    await jobQueue.enqueue(job.name, { zoneId: 1 }, "failing_1");
    await expect.poll(() => runs, LOOK).toEqual([1]);

    await jobQueue.enqueue(job.name, { zoneId: 2 }, "failing_2");

    await expect.poll(() => runs, LOOK).toEqual([1, 2]);
  });

  test.skipIf(skipped)("enqueueing an unknown job is a mistake of the caller", async () => {
    const jobQueue = openJobQueue(createBackend(kind, store.url), []);

    await expect(jobQueue.enqueue("no-such-job", {}, "a")).rejects.toThrow("no job is called no-such-job");
  });
});
