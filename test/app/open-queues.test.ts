import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openQueues } from "#app/open-queues.ts";
import { createMetrics } from "#faces/http/metrics.ts";
import { createSecret } from "#lib/secret.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import { createTestDatabase } from "../support/database.ts";

const DESTINATIONS = 7;

test("destinations that do not answer leave places for every other job of their queue", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const answers = Promise.withResolvers<void>();
  let waiting = 0;
  let detected = 0;
  const jobs: AnyJob[] = [
    defineJob({
      name: "forward-events",
      queue: "derive",
      payload: z.strictObject({ destination: z.string() }),
      attempts: 1,
      timeoutMs: 60_000,
      async run() {
        waiting += 1;
        await answers.promise;
        return undefined;
      },
    }),
    defineJob({
      name: "detect-spikes",
      queue: "derive",
      payload: z.strictObject({ zoneId: z.number() }),
      attempts: 1,
      timeoutMs: 60_000,
      async run() {
        detected += 1;
        return undefined;
      },
    }),
  ];
  const queues = openQueues({
    config: { redisUrl: null, redisCa: null, roles: ["derive"] },
    log: pino({ level: "silent" }),
    clock: Date.now,
    metrics: createMetrics(() => ({})),
    jobs,
    zones: 1,
    destinations: DESTINATIONS,
    databaseUrl: createSecret(database.url),
  });
  onTestFinished(() => queues.close(1_000));
  queues.start();
  for (let index = 0; index < DESTINATIONS; index += 1)
    await queues.enqueuer.enqueue("forward-events", { destination: `d${index}` });
  await expect.poll(() => waiting, { timeout: 20_000 }).toBe(DESTINATIONS);
  await queues.enqueuer.enqueue("detect-spikes", { zoneId: 101 });
  await expect.poll(() => detected, { timeout: 20_000 }).toBe(1);
  answers.resolve();
});
