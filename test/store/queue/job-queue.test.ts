import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { FenceLostError } from "#db/postgres/leases.ts";
import { ServiceError } from "#lib/errors.ts";
import type { AnyJob } from "#store/queue/define-job.ts";
import { atEnd } from "#test/support/at-end.ts";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { createStore, KINDS, openJobQueue, type Store } from "./support/store.ts";

const WAIT = { timeout: 20_000 };

class Failure extends ServiceError {
  readonly code = "TEST";
  readonly disposition: "retry" | "give-up" | "wait";
  override readonly waitMs = 50;

  constructor(disposition: "retry" | "give-up" | "wait") {
    super(`asked to ${disposition}`);
    this.disposition = disposition;
  }
}

/** Workers of a store of their own that have run one job, and the sessions of that store a second later. */
async function openIdle() {
  const store = await createStore("postgres");
  atEnd(() => store.drop());
  const client = new pg.Client({ connectionString: store.url });
  await client.connect();
  atEnd(() => client.end());
  const { job, runs } = recorder("idle");
  const jobQueue = openJobQueue(createBackend("postgres", store.url), [job], { lockMs: 600_000 });
  jobQueue.startWorkers();
  await jobQueue.enqueue(job.name, { zoneId: 101 }, "tick_a");
  await vi.waitFor(() => expect(runs).toEqual([101]));
  const look = async () =>
    (
      await client.query(`select pid, state_change from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() order by pid`)
    ).rows;
  // The worker that has just ended a job looks for another one first.
  await delay(1_000);
  return { jobQueue, job, runs, look, before: await look(), since: performance.now() };
}

/** The other tests run meanwhile. */
const idle = await openIdle();

test("workers without a job ask Postgres nothing, keep their connections, and still run a job at once", async () => {
  const { jobQueue, job, runs, look } = idle;
  // Longer than BullMQ's own wait of 5 s, and than the pool's own limit of 10 s for an idle connection.
  await delay(Math.max(0, idle.since + 12_000 - performance.now()));

  expect(await look()).toEqual(idle.before);
  const enqueuedAt = performance.now();
  await jobQueue.enqueue(job.name, { zoneId: 102 }, "tick_b");
  await expect.poll(() => runs).toEqual([101, 102]);
  expect(performance.now() - enqueuedAt).toBeLessThan(5_000);
});

describe.each(KINDS.map((row) => [row.name, row] as const))("%s", (_name, { kind, skipped }) => {
  let store: Store;

  beforeAll(async () => {
    if (!skipped) store = await createStore(kind);
  });

  afterAll(() => (skipped ? undefined : store.drop()));

  const open = (jobs: readonly AnyJob[]) => openJobQueue(createBackend(kind, store.url), jobs);

  test.skipIf(skipped)(
    "an enqueued job runs once with its payload, and a finished id may be enqueued again",
    async () => {
      const { job, runs } = recorder("once");
      const jobQueue = open([job]);
      jobQueue.startWorkers();

      expect(await jobQueue.enqueue(job.name, { zoneId: 101 }, "tick_a")).toBe(true);
      await expect.poll(() => runs, WAIT).toEqual([101]);
      await expect
        .poll(async () => {
          await jobQueue.enqueue(job.name, { zoneId: 102 }, "tick_a");
          return runs;
        }, WAIT)
        .toContain(102);
    },
  );

  test.skipIf(skipped)(
    "jobs with a delay run after it, also while the worker is idle, and not before",
    async () => {
      const startedAt = new Map<number, number>();
      const { job, runs } = recorder("delayed", async () => {
        startedAt.set(runs.at(-1) ?? 0, performance.now());
      });
      const jobQueue = open([job]);
      jobQueue.startWorkers();
      await jobQueue.enqueue(job.name, { zoneId: 1 }, "idle_first");
      await expect.poll(() => runs, WAIT).toEqual([1]);

      const enqueuedAt = performance.now();
      const delays = Array.from({ length: 5 }, (_, index) => (index + 1) * 150);
      await Promise.all(
        delays.map((delayMs) =>
          jobQueue.enqueue(job.name, { zoneId: delayMs }, `delayed_${delayMs}`, delayMs),
        ),
      );
      await expect.poll(() => runs.length, { timeout: 10_000 }).toBe(6);
      // A job's clock has whole milliseconds.
      for (const delayMs of delays)
        expect((startedAt.get(delayMs) ?? 0) - enqueuedAt).toBeGreaterThan(delayMs - 2);
    },
  );

  test.skipIf(skipped)("retry is tried again, give-up is not, wait uses up no attempt", async () => {
    const retried = recorder("retried", async (run) => {
      if (run < 2) throw new Failure("retry");
    });
    const abandoned = recorder("abandoned", async () => {
      throw new Failure("give-up");
    });
    const waiting = recorder("waiting", async (run) => {
      if (run <= 4) throw new Failure("wait");
    });
    const fenced = recorder("fenced", async () => {
      throw new FenceLostError("walk-days:1", 1);
    });
    const jobQueue = open([fenced.job, retried.job, abandoned.job, waiting.job]);
    jobQueue.startWorkers();

    for (const { job } of [fenced, retried, abandoned, waiting])
      await jobQueue.enqueue(job.name, { zoneId: 1 }, `x_${job.name}`);

    await expect.poll(() => retried.runs.length).toBe(2);
    await expect.poll(() => waiting.runs.length).toBe(5);
    expect(abandoned.runs).toHaveLength(1);
    expect(fenced.runs).toHaveLength(1);
  });

  test.skipIf(skipped)(
    "one of the ticks that waited for minutes runs per zone, and a failed run replaces none of them",
    async () => {
      const failing = recorder("failing", async (run) => {
        if (run < 3) throw new Failure("give-up");
      });
      const { job, runs } = recorder("tick");
      const last = recorder("last");
      const minuteLater = () => Date.now() + 60_000;
      const late = openJobQueue(createBackend(kind, store.url), [failing.job, job, last.job], {
        clock: minuteLater,
        concurrency: 1,
      });
      for (let tick = 0; tick < 5; tick++)
        for (const zoneId of [101, 102])
          await late.enqueue(job.name, { zoneId }, `${job.name}_${zoneId}_${tick}`);
      for (let tick = 0; tick < 5; tick++)
        await late.enqueue(failing.job.name, { zoneId: 1 }, `failing_${tick}`);
      await late.enqueue(last.job.name, { zoneId: 1 }, "last_1");
      late.startWorkers(["ingest"]);
      await expect.poll(() => last.runs, WAIT).toEqual([1]);
      expect(runs).toEqual([101, 102]);
      expect(failing.runs).toHaveLength(3);
    },
  );

  test.skipIf(skipped)("every job runs that was enqueued since its last run began", async () => {
    const { job, runs } = recorder("woken");
    const jobQueue = open([job]);
    for (let n = 0; n < 4; n++) await jobQueue.enqueue(job.name, { zoneId: 101 }, `woken_${n}`);
    jobQueue.startWorkers();
    await expect.poll(() => runs, WAIT).toEqual([101, 101, 101, 101]);
  });

  test.skipIf(skipped)("a payload that breaks its schema never reaches the job", async () => {
    const { job, runs } = recorder("checked");
    const jobQueue = open([job]);
    jobQueue.startWorkers();

    await jobQueue.enqueue(job.name, { zoneId: "101; drop table" }, "bad_payload");
    await jobQueue.enqueue(job.name, { zoneId: 7 }, "good_payload");

    await expect.poll(() => runs, WAIT).toEqual([7]);
  });

  test.skipIf(skipped)("close aborts a job that does not end by itself, and returns", async () => {
    let aborted = false;
    const stuck = recorder("stuck", (_run, signal) => {
      signal.addEventListener("abort", () => (aborted = true));
      return new Promise(() => {});
    });
    const jobQueue = open([stuck.job]);
    jobQueue.startWorkers();
    await jobQueue.enqueue(stuck.job.name, { zoneId: 1 }, "stuck_1");
    await expect.poll(() => stuck.runs.length, WAIT).toBe(1);

    await jobQueue.close(200);

    expect(aborted).toBe(true);
  });
});

test.each(KINDS.map((row) => [row.name, row.kind] as const))(
  "two jobs of one name are refused at start %s",
  (_name, kind) => {
    const { job } = recorder("twin");

    expect(() => openJobQueue(createBackend(kind, `${kind}://127.0.0.1:1/none`), [job, job])).toThrow(
      "two jobs share a name",
    );
  },
);
