import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openQueues } from "#app/open-queues.ts";
import { createQueueOutageReports, reportLostConnections } from "#app/report-outages.ts";
import { createMetrics } from "#faces/http/metrics.ts";
import { createLog } from "#lib/log.ts";
import { createSecret } from "#lib/secret.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import { askRedis } from "../store/queue/support/store.ts";
import { findRedisServer, startTestRedis } from "../support/redis.ts";

const WAIT = { timeout: 40_000 };

interface Line {
  readonly msg: string;
  readonly state?: string;
  readonly downMs?: number;
}

/** A log, and the lines that it wrote. */
function collect() {
  const written: string[] = [];
  const log = createLog({ level: "info", stream: { write: (line) => written.push(line) } });
  return { log, written, lines: () => written.map((line) => JSON.parse(line) as Line) };
}

test("the connections that a server's end costs are one line", () => {
  const { log, lines } = collect();
  const report = reportLostConnections(log, "database connection lost");
  for (let lost = 0; lost < 20; lost += 1) report(new Error("Connection terminated unexpectedly"));

  expect(lines()).toMatchObject([{ msg: "database connection lost", leftOut: 0 }]);
});

/** The queues of a service that enqueues a job again and again. */
function openBusyQueues(url: string, jobs: readonly AnyJob[]) {
  const { log, written, lines } = collect();
  const queues = openQueues({
    // An outage is over a second after its last error, instead of five.
    clock: () => 5 * Date.now(),
    config: { redisUrl: createSecret(url), redisCa: null, roles: ["ingest"] },
    log,
    metrics: createMetrics(() => ({})),
    jobs,
    zones: 1,
    destinations: 0,
    databaseUrl: createSecret("postgres://nobody@127.0.0.1:1/none"),
  });
  queues.start();
  const ticks = setInterval(() => void queues.enqueuer.enqueue("tick"), 100);
  onTestFinished(async () => {
    clearInterval(ticks);
    await queues.close(500);
  });
  return { queues, written, lines };
}

const server = findRedisServer();

test.skipIf(server === null)(
  "each state of Redis is one warning without a stack, and its end is one line",
  async () => {
    const redis = await startTestRedis(server ?? "");
    onTestFinished(() => redis.stop());
    let runs = 0;
    const tick = defineJob({
      name: "tick",
      queue: "ingest",
      payload: z.object({}),
      attempts: 1,
      timeoutMs: 60_000,
      async run() {
        runs += 1;
      },
    });
    const gate = Promise.withResolvers<void>();
    let isBlocked = false;
    const blocked = defineJob({
      name: "blocked",
      queue: "ingest",
      payload: z.object({}),
      attempts: 1,
      timeoutMs: 60_000,
      async run() {
        isBlocked = true;
        await gate.promise;
      },
    });
    const { queues, written, lines } = openBusyQueues(redis.url, [tick, blocked]);
    await expect.poll(() => runs, WAIT).toBeGreaterThan(0);
    const states: [string, () => Promise<unknown>, () => Promise<unknown>][] = [
      ["unreachable", () => redis.kill(), () => redis.restart()],
      [
        "read-only",
        () => askRedis(redis.url, "REPLICAOF", "127.0.0.1", "1"),
        () => askRedis(redis.url, "REPLICAOF", "NO", "ONE"),
      ],
      [
        "full",
        () => askRedis(redis.url, "CONFIG", "SET", "maxmemory", "1"),
        () => askRedis(redis.url, "CONFIG", "SET", "maxmemory", "0"),
      ],
      [
        "emptied",
        async () => {
          await queues.enqueuer.enqueue("blocked");
          await expect.poll(() => isBlocked, WAIT).toBe(true);
          await askRedis(redis.url, "FLUSHALL");
          gate.resolve();
        },
        () => askRedis(redis.url, "SCRIPT", "FLUSH"),
      ],
    ];
    for (const [index, [state, begin, end]] of states.entries()) {
      const recovered = () => lines().filter(({ msg }) => msg === "queue store recovered").length;
      await begin();
      await expect.poll(() => lines().map((line) => line.state), WAIT).toContain(state);
      await end();
      const before = runs;
      await expect.poll(recovered, WAIT).toBe(index + 1);
      await expect.poll(() => runs, WAIT).toBeGreaterThan(before);
    }

    const told = lines().map(({ msg, state }) => (state === undefined ? msg : `${msg}: ${state}`));
    expect(told).toEqual(
      states.flatMap(([state]) => [`queue store failed: ${state}`, "queue store recovered"]),
    );
    expect(written.join("")).not.toContain("stack");
  },
  240_000,
);

test("one outage is one warning for each of its states, and another one warns again", () => {
  let now = 0;
  const { log, lines } = collect();
  const reports = createQueueOutageReports("Redis", { log, clock: () => now });
  const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:6379"), { code: "ECONNREFUSED" });
  for (let second = 0; second < 100; second += 1) {
    now = second * 1_000;
    reports.onError("queue ingest", refused);
    reports.onError(
      "enqueue sweep",
      new Error("Stream isn't writeable and enableOfflineQueue options is false"),
    );
    reports.onEnqueued();
  }
  reports.onError("worker ingest", new Error("LOADING Redis is loading the dataset in memory"));
  reports.onEnqueued();
  now += 5_000;
  reports.onEnqueued();
  reports.onError("enqueue sweep", new Error("no answer within 2000 ms"));
  reports.onError(
    "worker alerts",
    new Error("Socket timeout. Expecting data, but didn't receive any in 20000ms."),
  );

  expect(lines().map(({ msg, state, downMs }) => ({ msg, state, downMs }))).toEqual([
    { msg: "queue store failed", state: "unreachable" },
    { msg: "queue store failed", state: "loading" },
    { msg: "queue store recovered", downMs: 104_000 },
    { msg: "queue store failed", state: "silent" },
  ]);
});

test("an error that is no state of the store is reported with its stack, once a minute", () => {
  const { log, written } = collect();
  const reports = createQueueOutageReports("Redis", { log, clock: () => 0 });
  for (let n = 0; n < 9; n += 1)
    reports.onError("worker ingest", new Error("NOPERM no permissions to run a key"));
  expect(written).toHaveLength(1);
  expect(written[0]).toContain("stack");
});
