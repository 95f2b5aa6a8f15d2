import { expect, onTestFinished, test } from "vitest";
import { findRedisServer } from "../../support/redis.ts";
import { type RedisGroup, startCluster, startSentinels } from "../../support/redis-group.ts";
import { soakTest } from "../../support/sample.ts";
import { createBackend } from "./support/backend.ts";
import { recorder } from "./support/recorder.ts";
import { openJobQueue } from "./support/store.ts";

const server = findRedisServer();
const skipped = server === null ? " (skipped: no valkey-server or redis-server on PATH)" : "";
const WAIT = { timeout: 60_000, interval: 100 };

async function goOn(start: (server: string) => Promise<RedisGroup>): Promise<void> {
  const group = await start(server ?? "");
  onTestFinished(() => group.stop());
  const backend = createBackend("redis", group.url);
  expect(await backend.findMistake()).toBeNull();
  const { job, runs } = recorder("group");
  const jobQueue = openJobQueue(backend, [job], { enqueueTimeoutMs: 500, lockMs: 2_000 });
  jobQueue.startWorkers(["ingest"]);
  let number = 0;
  const enqueue = (zoneId: number) => jobQueue.enqueue(job.name, { zoneId }, `group_${(number += 1)}`);
  await expect.poll(() => enqueue(1), WAIT).toBe(true);
  await expect.poll(() => runs, WAIT).toContain(1);

  await group.failOver();
  await expect.poll(() => enqueue(2), WAIT).toBe(true);
  await expect.poll(() => runs, WAIT).toContain(2);

  await group.revive();
  await group.ask("FLUSHALL");
  await expect.poll(() => enqueue(3), WAIT).toBe(true);
  await expect.poll(() => runs, WAIT).toContain(3);
  expect(await backend.findMistake()).toBeNull();
}

// On a busy machine an election takes as long as a test may.
const ofSoak = server === null ? test.skip : soakTest;

ofSoak(
  `F22: when the primary is killed, a queue behind Sentinels goes on at the one that takes over, and after a flush${skipped}`,
  () => goOn(startSentinels),
);

ofSoak(
  `F22, F28: when the primary is killed, a queue in a cluster goes on at the one that takes over, and after a flush${skipped}`,
  () => goOn(startCluster),
);

test.each(["redis+sentinel://127.0.0.1:1/queues", "redis+cluster://127.0.0.1:1"])(
  "the look at %s, where nothing listens, is rejected",
  async (url) => {
    await expect(createBackend("redis", url).findMistake()).rejects.toThrow(Error);
  },
);
