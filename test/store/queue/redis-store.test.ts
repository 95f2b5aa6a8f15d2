import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { findRedisServer, startTestRedis } from "../../support/redis.ts";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { askRedis, createStore, KINDS, openJobQueue, type Store } from "./support/store.ts";

const WAIT = { timeout: 20_000 };
const REDIS = KINDS.filter(({ kind }) => kind === "redis").map((row) => [row.name, row] as const);

describe.each(REDIS)("%s", (_name, { skipped }) => {
  let store: Store;

  beforeAll(async () => {
    if (!skipped) store = await createStore("redis");
  });

  afterAll(() => (skipped ? undefined : store.drop()));

  async function configure(name: string, value: string, before: string): Promise<void> {
    await askRedis(store.url, "CONFIG", "SET", name, value);
    onTestFinished(async () => void (await askRedis(store.url, "CONFIG", "SET", name, before)));
  }

  test.skipIf(skipped)("a store that may evict jobs is reported at the start", async () => {
    await configure("maxmemory-policy", "allkeys-lru", "noeviction");
    // BullMQ prints its own remark, once per connection.
    const printed = vi.spyOn(console, "warn").mockImplementation(() => {});
    onTestFinished(() => printed.mockRestore());
    const jobQueue = openJobQueue(createBackend("redis", store.url), []);
    jobQueue.startWorkers();

    await expect
      .poll(() => jobQueue.errors, WAIT)
      .toEqual(["store: maxmemory-policy is allkeys-lru, must be noeviction: queued jobs would vanish"]);
  });

  test.skipIf(skipped)(
    "a store without eviction has no mistake, and the look at a store that is gone is rejected",
    async () => {
      expect(await createBackend("redis", store.url).findMistake()).toBeNull();
      await expect(createBackend("redis", "redis://127.0.0.1:1").findMistake()).rejects.toThrow(
        "ECONNREFUSED",
      );
    },
  );

  test.skipIf(skipped)("a store that refuses what workers ask is not asked without a pause", async () => {
    const name = `limited${randomUUID().slice(0, 8)}`;
    await askRedis(store.url, "ACL", "SETUSER", name, "on", ">word", "~other:*", "&*", "+@all");
    onTestFinished(async () => void (await askRedis(store.url, "ACL", "DELUSER", name)));
    const url = new URL(store.url);
    Object.assign(url, { username: name, password: "word" });
    const jobQueue = openJobQueue(createBackend("redis", url.href), []);
    jobQueue.startWorkers();

    await expect
      .poll(() => jobQueue.errors.filter((text) => /NOPERM/.test(text)).length, WAIT)
      .toBeGreaterThan(4);
    // Without a pause there would be thousands by then.
    expect(jobQueue.errors.length).toBeLessThan(40);
  });

  test.skipIf(skipped)(
    "F23: with full memory enqueueing fails with the reason, and works again once there is space",
    async () => {
      const { job, runs } = recorder("full");
      const jobQueue = openJobQueue(createBackend("redis", store.url), [job]);
      jobQueue.startWorkers(["ingest"]);
      await jobQueue.enqueue(job.name, { zoneId: 1 }, "before");
      await expect.poll(() => runs, WAIT).toEqual([1]);

      await askRedis(store.url, "CONFIG", "SET", "maxmemory", "1");
      expect(await jobQueue.enqueue(job.name, { zoneId: 2 }, "during")).toBe(false);
      expect(jobQueue.errors.join()).toContain("maxmemory");
      await askRedis(store.url, "CONFIG", "SET", "maxmemory", "0");

      expect(await jobQueue.enqueue(job.name, { zoneId: 3 }, "after")).toBe(true);
      await expect.poll(() => runs, WAIT).toEqual([1, 3]);
    },
  );

  test.skipIf(skipped)("F22: killed and started again, the server still has the jobs it took", async () => {
    const server = await startTestRedis(findRedisServer() ?? "");
    onTestFinished(() => server.stop());
    // With `everysec`, a server that is killed while it waits for a slow disk loses up to two seconds.
    await askRedis(server.url, "CONFIG", "SET", "appendfsync", "always");
    const { job, runs } = recorder("survivor");
    const jobQueue = openJobQueue(createBackend("redis", server.url), [job], { enqueueTimeoutMs: 500 });
    expect(await jobQueue.enqueue(job.name, { zoneId: 1 }, "before")).toBe(true);

    await server.kill();
    expect(await jobQueue.enqueue(job.name, { zoneId: 2 }, "during")).toBe(false);
    await server.restart();
    jobQueue.startWorkers(["ingest"]);

    await expect.poll(() => runs, WAIT).toEqual([1]);
    await expect.poll(() => jobQueue.enqueue(job.name, { zoneId: 3 }, "after"), WAIT).toBe(true);
    await expect.poll(() => runs, WAIT).toEqual([1, 3]);
  });
});
