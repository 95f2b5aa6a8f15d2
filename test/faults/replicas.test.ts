import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { createEmulator } from "#emulator/emulator.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { findRedisServer, startTestRedis } from "../support/redis.ts";
import { sample } from "../support/sample.ts";
import { writeSchedule } from "../support/write-schedule.ts";
import { findBreaches, findMissing, readShown } from "./invariants.ts";
import { startServiceProcess } from "./service-process.ts";
import { startTcpProxy } from "./tcp-proxy.ts";
import { startWebhookReceiver } from "./webhook-receiver.ts";

const ZONE = 101;
const HISTORY_HOURS = 4;
const WAIT = { timeout: 200_000, interval: 200 };
/** Every replica has a data folder of its own, and all need the same key. */
const PSEUDONYM_KEY = "pseudonym-key-of-every-replica-in-this-test";

const folder = mkdtempSync(path.join(tmpdir(), "longwatch-replicas-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function openStores(queues: "postgres" | "redis") {
  const emulator = await createEmulator({
    zones: [ZONE],
    historyHours: HISTORY_HOURS,
    eventsPerSecond: 0.02,
    lateShare: 0,
    pageSize: 100,
    attacks: [`zone=${ZONE},rule=942100,start=-5m,duration=4m,rate=2/s`],
  });
  onTestFinished(() => emulator.close());
  const toPlatform = await startTcpProxy(emulator.port);
  onTestFinished(() => toPlatform.close());
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const receiver = await startWebhookReceiver();
  onTestFinished(() => receiver.close());
  const server = queues === "redis" ? findRedisServer() : null;
  const redis = server === null ? null : await startTestRedis(server);
  onTestFinished(() => redis?.stop());
  const start = (name: string) => {
    const service = startServiceProcess({
      DATABASE_URL: database.url,
      ...(redis === null ? {} : { REDIS_URL: redis.url }),
      EDGE_API_URL: toPlatform.through(emulator.url),
      EDGE_API_KEY: emulator.accessKey,
      EDGE_SHIELD_ZONES: String(ZONE),
      EDGE_REQUESTS_PER_SECOND: "1000",
      LONGWATCH_DATA_DIR: path.join(folder, `${name}-${emulator.port}`),
      LONGWATCH_PSEUDONYM_KEY: PSEUDONYM_KEY,
      ...writeSchedule(folder, { "poll-events": "* * * * * *" }),
      LONGWATCH_LOG_LEVEL: "error",
      ...receiver.env,
    });
    onTestFinished(() => void service.child.kill("SIGKILL"));
    return service;
  };
  return { emulator, toPlatform, database, receiver, start };
}

// Without a Redis server on PATH the queues of both are in Postgres.
const REPLICAS = [
  [2, "postgres"],
  [5, "redis"],
] as const;
test.each(sample(REPLICAS, ([, queues]) => queues === "redis"))(
  "F3, F4, F5, I2, I7, I9: %i replicas store every event once, page once per episode and ask the platform no more than one would (queues in %s); while the platform does not answer, a replica ends in time with no lease taken, and at once after a second SIGTERM",
  async (count, queues) => {
    const { emulator, toPlatform, database, receiver, start } = await openStores(queues);
    const startedAt = Date.now();
    const replicas = Array.from({ length: count }, (_, index) => start(`replica-${index}`));
    const missing = async () => findMissing(database, ZONE, await readShown(emulator.url, ZONE));
    await vi.waitFor(async () => expect(await missing()).toEqual([]), WAIT);
    const firsts = () =>
      receiver.received.filter(({ reason, ruleId }) => reason === "first" && ruleId === "942100");
    await vi.waitFor(() => expect(firsts()).toHaveLength(1), WAIT);
    // The recommendation is in a message of its own, or in the first one if it was quicker.
    const advices = () => receiver.received.filter(({ advice }) => advice.state === "present");
    await vi.waitFor(() => {
      expect(advices().length).toBeGreaterThan(0);
      const asked = emulator.requests().counts["recommend-rule"];
      expect(asked).toBe(new Set(advices().map(({ alertId }) => alertId)).size);
    }, WAIT);

    // One replica is killed in the middle of its work. Of the others all but one are told to stop.
    const [killed, patient, ...others] = replicas;
    killed?.child.kill("SIGKILL");
    for (const { child } of others) child.kill("SIGTERM");
    expect(await killed?.exited).toBe("SIGKILL");
    expect(await Promise.all(others.map(({ exited }) => exited))).toEqual(others.map(() => 0));
    const periods = Math.ceil((Date.now() - startedAt) / 1_000) + 1;
    const { counts } = emulator.requests();
    const askedSoFar = counts["search-event-logs"] ?? 0;

    toPlatform.behave({ isDeaf: true });
    const isAsking = async () => {
      const before = emulator.requests().counts["search-event-logs"] ?? 0;
      const readAsked = () => emulator.requests().counts["search-event-logs"];
      await vi.waitFor(() => expect(readAsked()).toBeGreaterThan(before), WAIT);
    };
    await isAsking();
    patient?.child.kill("SIGTERM");
    expect(await patient?.exited).toBe(0);
    const { rows: taken } = await database.pool.query(
      "select name from leases where expires_at is not null and holder like $1",
      [`%"pid":${patient?.child.pid},%`],
    );
    expect(taken).toEqual([]);
    const hasty = start("hasty");
    await isAsking();
    hasty.child.kill("SIGTERM");
    await vi.waitFor(() => expect(hasty.printed()).toContain("Stopping"), WAIT);
    hasty.child.kill("SIGTERM");
    expect([0, 1]).toContain(await hasty.exited);

    expect(await findBreaches(database, ZONE, () => readShown(emulator.url, ZONE))).toEqual([]);
    const ids = receiver.received.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(firsts()).toHaveLength(1);
    // One search per hour of history and two per poll; a list of few pages for each of three days and passes.
    expect(askedSoFar).toBeLessThan(HISTORY_HOURS + 72 + 2 * periods);
    const { rows } = await database.pool.query<{ pages: number }>(
      "select sum(pass * (pages_seen + 1))::int as pages from ingest_cursors",
    );
    expect(counts["list-event-logs"] ?? 0).toBeLessThanOrEqual((rows[0]?.pages ?? 0) + 3);
  },
);
