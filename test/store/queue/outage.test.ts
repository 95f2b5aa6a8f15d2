import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createEnqueuer } from "#store/queue/enqueuer.ts";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { createStore, KINDS, openJobQueue, type Store } from "./support/store.ts";

/** The number by which BullMQ locks its schema while it starts, from its migrator.js. */
const MIGRATION_ADVISORY_LOCK_KEY = 0x42554c4c;

/** The tests of a store share it, and a job that a cut has left there keeps its id: no two tests enqueue the same one. */
describe.each(KINDS.map((row) => [row.name, row] as const))("%s", (_name, { kind, skipped }) => {
  let store: Store;

  beforeAll(async () => {
    if (!skipped) store = await createStore(kind);
  });

  afterAll(() => (skipped ? undefined : store.drop()));

  const relayed = (jobs: Parameters<typeof openJobQueue>[1]) =>
    openJobQueue(createBackend(kind, store.relayedUrl), jobs, { enqueueTimeoutMs: 400, lockMs: 1_000 });

  test.skipIf(skipped)(
    "F20: refused at the start, work goes on in this process, and through the queue once it is there",
    async () => {
      const { job, runs } = recorder("from-nowhere");
      await store.relay.cut();
      const jobQueue = relayed([job]);
      const enqueuer = createEnqueuer({ jobQueue, jobs: [job], onError() {} });
      onTestFinished(() => enqueuer.stop(0));
      jobQueue.startWorkers();

      expect(await jobQueue.enqueue(job.name, { zoneId: 1 }, "alone")).toBe(false);
      expect(await enqueuer.enqueue(job.name, { zoneId: 2 })).toBe(true);
      expect(runs).toEqual([2]);
      expect(jobQueue.errors.length).toBeGreaterThan(0);

      await store.relay.restore();
      await expect.poll(() => jobQueue.enqueue(job.name, { zoneId: 3 }, "together")).toBe(true);
      await expect.poll(() => runs).toContain(3);
    },
  );

  test.skipIf(skipped)(
    "F22: while its connections are reset an enqueue returns false, and both ends come back by themselves",
    async () => {
      const { job, runs } = recorder("cut-off");
      const jobQueue = relayed([job]);
      jobQueue.startWorkers();
      await jobQueue.enqueue(job.name, { zoneId: 1 }, "cut_1");
      await expect.poll(() => runs).toEqual([1]);

      await store.relay.cut();
      expect(await jobQueue.enqueue(job.name, { zoneId: 2 }, "cut_2")).toBe(false);
      await store.relay.restore();

      await expect.poll(() => jobQueue.enqueue(job.name, { zoneId: 3 }, "cut_3")).toBe(true);
      await expect.poll(() => runs).toContain(3);
    },
  );

  test.skipIf(skipped)(
    "a hanging store gets one enqueue, not one per tick, and enqueues work again when it answers",
    async () => {
      const { job, runs } = recorder("hung");
      const jobQueue = relayed([job]);
      jobQueue.startWorkers();
      await jobQueue.enqueue(job.name, { zoneId: 0 }, "hung_0");
      await expect.poll(() => runs).toEqual([0]);

      store.relay.hold();
      for (let zoneId = 1; zoneId <= 5; zoneId += 1)
        expect(await jobQueue.enqueue(job.name, { zoneId }, `hung_${zoneId}`)).toBe(false);
      store.relay.release();

      await expect.poll(() => jobQueue.enqueue(job.name, { zoneId: 6 }, "hung_6")).toBe(true);
      await expect.poll(() => runs).toContain(6);
      expect(runs).not.toEqual(expect.arrayContaining([2]));
      expect(runs).not.toEqual(expect.arrayContaining([5]));
    },
  );

  test.skipIf(skipped)(
    "F21: a queue that is emptied while one job runs and others wait loses these and takes the next job",
    async () => {
      const gate = Promise.withResolvers<void>();
      const { job, runs } = recorder("emptied", async (run) => {
        if (run === 1) await gate.promise;
      });
      const jobQueue = openJobQueue(createBackend(kind, store.url), [job], { concurrency: 1 });
      jobQueue.startWorkers();
      for (const zoneId of [1, 2, 3]) await jobQueue.enqueue(job.name, { zoneId }, `lost_${zoneId}`);
      await expect.poll(() => runs).toEqual([1]);

      await store.wipe();
      gate.resolve();
      await expect.poll(() => jobQueue.enqueue(job.name, { zoneId: 4 }, "kept")).toBe(true);

      await expect.poll(() => runs).toEqual([1, 4]);
    },
  );

  test.skipIf(skipped)("F4: with the store gone and a job that never ends, a close returns", async () => {
    const stuck = recorder("never-ends", () => new Promise(() => {}));
    const jobQueue = relayed([stuck.job]);
    jobQueue.startWorkers();
    await jobQueue.enqueue(stuck.job.name, { zoneId: 1 }, "stuck");
    await expect.poll(() => stuck.runs).toEqual([1]);
    await store.relay.cut();
    onTestFinished(() => store.relay.restore());

    await expect(jobQueue.close(200)).resolves.toBeUndefined();
  });

  test.skipIf(skipped)(
    "a store that ends after the close is no outage, even if a job never ended",
    async () => {
      const stuck = recorder("left-behind", () => new Promise(() => {}));
      const jobQueue = relayed([stuck.job]);
      const witness = relayed([recorder("witness").job]);
      jobQueue.startWorkers(["ingest"]);
      // Of another queue: it does not know the job.
      witness.startWorkers(["derive"]);
      await jobQueue.enqueue(stuck.job.name, { zoneId: 1 }, "left");
      await expect.poll(() => stuck.runs).toEqual([1]);
      await jobQueue.close(200);
      const before = [...jobQueue.errors];
      await store.relay.cut();
      onTestFinished(() => store.relay.restore());

      await expect.poll(() => witness.errors).not.toEqual([]);
      expect(jobQueue.errors).toEqual(before);
    },
  );

  test.skipIf(skipped)("a close before the first connection came about returns", async () => {
    await store.relay.cut();
    onTestFinished(() => store.relay.restore());
    const jobQueue = relayed([recorder("too-early").job]);
    jobQueue.startWorkers();

    await expect(jobQueue.close(200)).resolves.toBeUndefined();
  });

  test.skipIf(skipped)("a worker that has stopped taking jobs is replaced, and said so", async () => {
    const { job, runs } = recorder("stopped");
    const backend = createBackend(kind, store.url);
    let opened = 0;
    const faulty: typeof backend = {
      ...backend,
      openWorker: (name, processor, options) =>
        // The first one connects, and then takes nothing.
        backend.openWorker(name, processor, { ...options, autorun: (opened += 1) > 1 }),
    };
    const jobQueue = openJobQueue(faulty, [job], { lockMs: 300 });
    jobQueue.startWorkers(["ingest"]);
    await jobQueue.enqueue(job.name, { zoneId: 1 }, "waiting");

    await expect.poll(() => runs).toEqual([1]);
    expect(jobQueue.errors).toEqual(["worker ingest: it has stopped taking jobs, another takes its place"]);
  });
});

test("F30: a replica that vanishes in a transaction of its start does not keep others from starting for long", async () => {
  const store = await createStore("postgres");
  onTestFinished(() => store.drop());
  const client = new pg.Client({ connectionString: store.url });
  await client.connect();
  onTestFinished(() => client.end());
  const schemaLock = "($1, hashtext('bullmq'))";
  const locksOf = async (state: string) => {
    const { rowCount } = await client.query(
      `select from pg_stat_activity join pg_locks using (pid) where datname = current_database()
         and application_name = 'longwatch queue' and state = $1 and locktype = 'advisory'`,
      [state],
    );
    return rowCount;
  };
  await client.query(`select pg_advisory_lock${schemaLock}`, [MIGRATION_ADVISORY_LOCK_KEY]);
  // Each connection of a vanished replica may get the lock in turn, for this long.
  const limits = { idleInTransactionMs: 200 };
  const vanished = openJobQueue(createBackend("postgres", store.relayedUrl, limits), [
    recorder("vanished").job,
  ]);
  vanished.startWorkers();
  await expect.poll(() => locksOf("active")).toBeGreaterThan(0);
  // Its machine loses its power while it waits for the lock: nothing ends its connections, and Postgres grants it the lock.
  store.relay.hold();
  await client.query(`select pg_advisory_unlock${schemaLock}`, [MIGRATION_ADVISORY_LOCK_KEY]);
  await expect.poll(() => locksOf("idle in transaction")).toBeGreaterThan(0);

  const { job, runs } = recorder("other");
  const other = openJobQueue(createBackend("postgres", store.url), [job]);
  other.startWorkers();
  await expect.poll(() => other.enqueue(job.name, { zoneId: 1 }, "other_1")).toBe(true);
  await expect.poll(() => runs).toEqual([1]);
  store.relay.release();
});
