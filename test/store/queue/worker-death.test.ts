import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { createStore, KINDS, openJobQueue, type Store } from "./support/store.ts";

/** A worker may be paused in a transaction, which Postgres ends after seconds. */
const WAIT = { timeout: 60_000 };
const LOCK_MS = 300;
const WORKER = fileURLToPath(new URL("./support/worker-process.ts", import.meta.url));

describe.each(KINDS.map((row) => [row.name, row] as const))("%s", (_name, { kind, skipped }) => {
  let store: Store;

  beforeAll(async () => {
    if (!skipped) store = await createStore(kind);
  });

  afterAll(() => (skipped ? undefined : store.drop()));

  /** A worker process, and the words it has said. */
  async function startWorkerProcess(job: string): Promise<{ child: ChildProcess; words: unknown[] }> {
    const child = fork(WORKER, [kind, store.url, job, String(LOCK_MS)]);
    const words: unknown[] = [];
    child.on("message", (word) => words.push(word));
    onTestFinished(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    });
    await expect.poll(() => words, WAIT).toContain("started");
    return { child, words };
  }

  test.skipIf(skipped)("F25: a job whose worker was killed twice is run by the third", async () => {
    const { job, runs } = recorder("twice-killed");
    const jobQueue = openJobQueue(createBackend(kind, store.url), [job], { lockMs: LOCK_MS });
    const victims = await Promise.all([startWorkerProcess(job.name), startWorkerProcess(job.name)]);
    await jobQueue.enqueue(job.name, { zoneId: 7 }, "only_once");

    for (const killed of [1, 2]) {
      await expect
        .poll(() => victims.filter(({ words }) => words.includes("begun")).length, WAIT)
        .toBe(killed);
      const holder = victims.find(({ child, words }) => !child.killed && words.includes("begun"));
      holder?.child.kill("SIGKILL");
    }
    jobQueue.startWorkers(["ingest"]);

    await expect.poll(() => runs, WAIT).toEqual([7]);
  });

  test.skipIf(skipped)(
    "a job that lasts longer than its lock is run by one of two workers, once",
    async () => {
      // On a busy machine a claim takes longer than two of the short locks, and the worker counts as stopped. A renewal may be a
      // second late as well.
      const lockMs = 2_500;
      const { job, runs } = recorder("long", () => delay(3 * lockMs));
      const jobQueues = [1, 2].map(() => openJobQueue(createBackend(kind, store.url), [job], { lockMs }));
      for (const jobQueue of jobQueues) jobQueue.startWorkers(["ingest"]);
      await jobQueues[0]?.enqueue(job.name, { zoneId: 1 }, "long_1");
      await expect.poll(() => runs, WAIT).toEqual([1]);

      await Promise.all(jobQueues.map((jobQueue) => jobQueue.close(10_000)));

      expect(runs).toEqual([1]);
      expect(jobQueues.flatMap(({ errors }) => errors)).toEqual([]);
    },
  );

  test.skipIf(skipped)(
    "F24: a worker that was paused past its lock finds its job run by another, and lives on",
    async () => {
      const { job, runs } = recorder("paused");
      const jobQueue = openJobQueue(createBackend(kind, store.url), [job], { lockMs: LOCK_MS });
      const { child, words } = await startWorkerProcess(job.name);
      await jobQueue.enqueue(job.name, { zoneId: 1 }, "paused_1");
      await expect.poll(() => words, WAIT).toContain("begun");

      child.kill("SIGSTOP");
      jobQueue.startWorkers(["ingest"]);
      await expect.poll(() => runs, WAIT).toEqual([1]);
      await jobQueue.close(1_000);
      child.kill("SIGCONT");
      child.send("end");
      await expect.poll(() => words, WAIT).toContain("ended");

      const other = openJobQueue(createBackend(kind, store.url), [job]);
      await other.enqueue(job.name, { zoneId: 2 }, "paused_2");
      await expect.poll(() => words.filter((word) => word === "begun").length, WAIT).toBe(2);
    },
  );
});
