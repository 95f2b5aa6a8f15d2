import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createBell } from "../../src/queue/bell.ts";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { createStore, KINDS, openDoorbell, type Store } from "./support/store.ts";

const LOOK = { timeout: 20_000 };

describe.each(KINDS.map((row) => [row.name, row] as const))("%s", (_name, { kind, skipped }) => {
  let store: Store;

  beforeAll(async () => {
    if (!skipped) store = await createStore(kind);
  });

  afterAll(() => (skipped ? undefined : store.drop()));

  const relayed = (jobs: Parameters<typeof openDoorbell>[1]) =>
    openDoorbell(createBackend(kind, store.relayedUrl), jobs, { ringTimeoutMs: 400, lockMs: 1_000 });

  test.skipIf(skipped)(
    "F20: refused at the start, work goes on in this process, and through the queue once it is there",
    async () => {
      const { job, runs } = recorder("from-nowhere");
      await store.relay.cut();
      const doorbell = relayed([job]);
      const bell = createBell({ doorbell, jobs: [job], onError() {} });
      onTestFinished(() => bell.stop(0));
      doorbell.startWorkers();

      expect(await doorbell.ring(job.name, { zoneId: 1 }, "alone")).toBe(false);
      expect(await bell.ring(job.name, { zoneId: 2 })).toBe(true);
      expect(runs).toEqual([2]);
      expect(doorbell.errors.length).toBeGreaterThan(0);

      await store.relay.restore();
      await expect.poll(() => doorbell.ring(job.name, { zoneId: 3 }, "together"), LOOK).toBe(true);
      await expect.poll(() => runs, LOOK).toContain(3);
    },
  );

  test.skipIf(skipped)(
    "F22: with its connections reset a ring says no, and both ends come back by themselves",
    async () => {
      const { job, runs } = recorder("cut-off");
      const doorbell = relayed([job]);
      doorbell.startWorkers();
      await doorbell.ring(job.name, { zoneId: 1 }, "before");
      await expect.poll(() => runs, LOOK).toEqual([1]);

      await store.relay.cut();
      expect(await doorbell.ring(job.name, { zoneId: 2 }, "during")).toBe(false);
      await store.relay.restore();

      await expect.poll(() => doorbell.ring(job.name, { zoneId: 3 }, "after"), LOOK).toBe(true);
      await expect.poll(() => runs, LOOK).toContain(3);
    },
  );

  test.skipIf(skipped)(
    "a store that hangs is rung once, not once per tick, and rings are heard again when it answers",
    async () => {
      const { job, runs } = recorder("hung");
      const doorbell = relayed([job]);
      doorbell.startWorkers();
      await doorbell.ring(job.name, { zoneId: 0 }, "before");
      await expect.poll(() => runs, LOOK).toEqual([0]);

      store.relay.hold();
      for (let zoneId = 1; zoneId <= 5; zoneId += 1)
        expect(await doorbell.ring(job.name, { zoneId }, `hung_${zoneId}`)).toBe(false);
      store.relay.release();

      await expect.poll(() => doorbell.ring(job.name, { zoneId: 6 }, "after"), LOOK).toBe(true);
      await expect.poll(() => runs, LOOK).toContain(6);
      expect(runs).not.toEqual(expect.arrayContaining([2]));
      expect(runs).not.toEqual(expect.arrayContaining([5]));
    },
  );

  test.skipIf(skipped)(
    "F21: emptied while one job runs and others wait, the queue loses them and takes the next ring",
    async () => {
      const gate = Promise.withResolvers<void>();
      const { job, runs } = recorder("emptied", async (run) => {
        if (run === 1) await gate.promise;
      });
      const doorbell = openDoorbell(createBackend(kind, store.url), [job], { concurrency: 1 });
      doorbell.startWorkers();
      for (const zoneId of [1, 2, 3]) await doorbell.ring(job.name, { zoneId }, `lost_${zoneId}`);
      await expect.poll(() => runs, LOOK).toEqual([1]);

      await store.wipe();
      gate.resolve();
      await expect.poll(() => doorbell.ring(job.name, { zoneId: 4 }, "kept"), LOOK).toBe(true);

      await expect.poll(() => runs, LOOK).toEqual([1, 4]);
    },
  );

  test.skipIf(skipped)("F4: with the store gone and a job that never ends, a close returns", async () => {
    const stuck = recorder("never-ends", () => new Promise(() => {}));
    const doorbell = relayed([stuck.job]);
    doorbell.startWorkers();
    await doorbell.ring(stuck.job.name, { zoneId: 1 }, "stuck");
    await expect.poll(() => stuck.runs, LOOK).toEqual([1]);
    await store.relay.cut();
    onTestFinished(() => store.relay.restore());

    await expect(doorbell.close(200)).resolves.toBeUndefined();
  });

  test.skipIf(skipped)("a close before the first connection came about returns", async () => {
    await store.relay.cut();
    onTestFinished(() => store.relay.restore());
    const doorbell = relayed([recorder("too-early").job]);
    doorbell.startWorkers();

    await expect(doorbell.close(200)).resolves.toBeUndefined();
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
    const doorbell = openDoorbell(faulty, [job], { lockMs: 300 });
    doorbell.startWorkers(["ingest"]);
    await doorbell.ring(job.name, { zoneId: 1 }, "waiting");

    await expect.poll(() => runs, LOOK).toEqual([1]);
    expect(doorbell.errors).toEqual(["worker ingest: it has stopped taking jobs, another takes its place"]);
  });
});
