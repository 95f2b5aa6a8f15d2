import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { FenceLostError } from "../../db/fence-lost-error.ts";
import { ServiceError } from "../../src/errors.ts";
import { createQueueBackend } from "../../src/queue/backend.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";
import { createDoorbell, type Doorbell } from "../../src/queue/doorbell.ts";
import { createSecret } from "../../src/secret.ts";
import { createTestDatabase } from "../support/database.ts";
import { findRedisServer, startTestRedis, type TestRedis } from "../support/redis.ts";

const redisServer = findRedisServer();
const NOWHERE = createSecret("postgres://127.0.0.1:1/none");

class Failure extends ServiceError {
  readonly code = "TEST";
  readonly disposition: "retry" | "give-up" | "wait";
  override readonly waitMs = 50;

  constructor(disposition: "retry" | "give-up" | "wait") {
    super(`asked to ${disposition}`);
    this.disposition = disposition;
  }
}

/** A job that notes every run and then does what the test says. */
function recorder(
  name: string,
  behave: (run: number, signal: AbortSignal) => Promise<void> = async () => {},
) {
  const runs: number[] = [];
  const job = defineJob({
    name,
    queue: "ingest",
    payload: z.object({ zoneId: z.number().int() }),
    attempts: 3,
    timeoutMs: 10_000,
    async run({ zoneId }, signal) {
      runs.push(zoneId);
      await behave(runs.length, signal);
    },
  });
  return { job, runs };
}

const database = { url: "", drop: async () => {} };
let redis: TestRedis | undefined;

beforeAll(async () => {
  Object.assign(database, await createTestDatabase());
  if (redisServer !== null) redis = await startTestRedis(redisServer);
});

afterAll(async () => {
  await database.drop();
  await redis?.stop();
});

function open(kind: "redis" | "postgres", jobs: readonly AnyJob[]): Doorbell {
  const backend = createQueueBackend({
    redisUrl: kind === "redis" ? createSecret(redis?.url ?? "") : null,
    databaseUrl: kind === "redis" ? NOWHERE : createSecret(database.url),
  });
  const doorbell = createDoorbell({ backend, jobs, concurrency: 2, ringTimeoutMs: 5_000, onError() {} });
  onTestFinished(() => doorbell.close(1_000));
  return doorbell;
}

describe.each([
  { kind: "postgres" as const, skipped: false, name: "on Postgres" },
  {
    kind: "redis" as const,
    skipped: redisServer === null,
    name: redisServer === null ? "on Redis (skipped: no valkey-server or redis-server on PATH)" : "on Redis",
  },
])("$name", ({ kind, skipped }) => {
  test.skipIf(skipped)(
    "a ring runs the job once with its payload, and a finished id may be rung again",
    async () => {
      const { job, runs } = recorder(`once-${kind}`);
      const doorbell = open(kind, [job]);
      doorbell.startWorkers();

      expect(await doorbell.ring(job.name, { zoneId: 101 }, "tick_a")).toBe(true);
      await expect.poll(() => runs).toEqual([101]);
      await expect
        .poll(async () => {
          await doorbell.ring(job.name, { zoneId: 102 }, "tick_a");
          return runs;
        })
        .toContain(102);
    },
  );

  test.skipIf(skipped)("retry is tried again, give-up is not, wait uses up no attempt", async () => {
    const retried = recorder(`retried-${kind}`, async (run) => {
      if (run < 2) throw new Failure("retry");
    });
    const abandoned = recorder(`abandoned-${kind}`, async () => {
      throw new Failure("give-up");
    });
    const waiting = recorder(`waiting-${kind}`, async (run) => {
      if (run <= 4) throw new Failure("wait");
    });
    const fenced = recorder(`fenced-${kind}`, async () => {
      throw new FenceLostError("walk-days:1", 1);
    });
    const doorbell = open(kind, [fenced.job, retried.job, abandoned.job, waiting.job]);
    doorbell.startWorkers();

    for (const { job } of [fenced, retried, abandoned, waiting])
      await doorbell.ring(job.name, { zoneId: 1 }, `x_${job.name}`);

    await expect.poll(() => retried.runs.length, { timeout: 15_000 }).toBe(2);
    await expect.poll(() => waiting.runs.length, { timeout: 15_000 }).toBe(5);
    expect(abandoned.runs).toHaveLength(1);
    expect(fenced.runs).toHaveLength(1);
  });

  test.skipIf(skipped)("a payload that breaks its schema never reaches the job", async () => {
    const { job, runs } = recorder(`checked-${kind}`);
    const doorbell = open(kind, [job]);
    doorbell.startWorkers();

    await doorbell.ring(job.name, { zoneId: "101; drop table" }, "bad_payload");
    await doorbell.ring(job.name, { zoneId: 7 }, "good_payload");

    await expect.poll(() => runs).toEqual([7]);
  });

  test.skipIf(skipped)("close aborts a job that does not end by itself, and returns", async () => {
    let aborted = false;
    const stuck = recorder(`stuck-${kind}`, (_run, signal) => {
      signal.addEventListener("abort", () => (aborted = true));
      return new Promise(() => {});
    });
    const doorbell = open(kind, [stuck.job]);
    doorbell.startWorkers();
    await doorbell.ring(stuck.job.name, { zoneId: 1 }, "stuck_1");
    await expect.poll(() => stuck.runs.length).toBe(1);

    await doorbell.close(200);

    expect(aborted).toBe(true);
  });
});

test.skipIf(redisServer === null)(
  "a ring while Redis is down says so in time, and works again after it is back",
  async () => {
    const own = await startTestRedis(redisServer ?? "");
    onTestFinished(() => own.stop());
    const { job, runs } = recorder("down");
    const backend = createQueueBackend({ redisUrl: createSecret(own.url), databaseUrl: NOWHERE });
    const doorbell = createDoorbell({
      backend,
      jobs: [job],
      concurrency: 1,
      ringTimeoutMs: 300,
      onError() {},
    });
    onTestFinished(() => doorbell.close(500));
    doorbell.startWorkers();
    await expect.poll(() => doorbell.ring(job.name, { zoneId: 1 }, "before")).toBe(true);

    await own.kill();
    expect(await doorbell.ring(job.name, { zoneId: 2 }, "during")).toBe(false);

    await own.restart();
    await expect.poll(() => doorbell.ring(job.name, { zoneId: 3 }, "after"), { timeout: 20_000 }).toBe(true);
    await expect.poll(() => runs, { timeout: 20_000 }).toContain(3);
  },
);

test("two jobs of one name are refused at start", () => {
  const backend = createQueueBackend({ redisUrl: null, databaseUrl: createSecret(database.url) });
  const { job } = recorder("twin");

  expect(() =>
    createDoorbell({ backend, jobs: [job, job], concurrency: 1, ringTimeoutMs: 100, onError() {} }),
  ).toThrow("two jobs share a name");
});
