import { eq, sql } from "drizzle-orm";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { alerts } from "#db/schema/alerts.ts";
import { dirtyBuckets } from "#db/schema/ingest.ts";
import { notifications } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import { createRaiseAlertsJob } from "#jobs/alerts/raise-alerts.ts";
import { createDeliverAlertsJob } from "#jobs/delivery/deliver-alerts.ts";
import { createSweepJob } from "#jobs/health/sweep.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import { createEnqueuer } from "#store/queue/enqueuer.ts";
import { insertSpike } from "../alerts/insert-spike.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { createDeliverWorld, startReceiver, webhooksOf } from "../delivery/deliver-world.ts";
import { createBackend } from "../store/queue/support/backend.ts";
import { createStore, openJobQueue } from "../store/queue/support/store.ts";

const log = pino({ level: "silent" });
const signal = new AbortController().signal;
const ago = (ms: number) => new Date(Date.now() - ms);
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

beforeEach(async () => {
  for (const table of [alerts, spikes, dirtyBuckets]) await database.db.delete(table);
});

async function sweep(): Promise<string[]> {
  const enqueued: string[] = [];
  const enqueue = async (job: string) => enqueued.push(job);
  await createSweepJob({ database, clock: Date.now, enqueue }).run({} as never, signal);
  return enqueued.sort();
}

test("a sweep enqueues the weekly digest once an hour if the configuration names a channel for it", async () => {
  const enqueued: string[] = [];
  let nowMs = Date.now();
  const digestChannels = () => ["chat"];
  const enqueue = async (job: string) => enqueued.push(job);
  const job = createSweepJob({ database, clock: () => nowMs, enqueue, digestChannels });
  for (const minutes of [0, 30, 30]) {
    nowMs += minutes * MINUTE_MS;
    await job.run({} as never, signal);
  }
  expect(enqueued).toEqual(["send-digest", "send-digest"]);
  expect(await sweep()).toEqual([]);
});

const spike = (closedAt: Date | null = null) =>
  insertSpike(database.db, { openedAt: ago(30 * HOUR_MS), closedAt });

async function alert(over: Partial<typeof alerts.$inferInsert> = {}): Promise<number> {
  const row = {
    firedAt: ago(HOUR_MS),
    kind: "spike",
    fingerprint: "f",
    zoneId: 101,
    ruleId: "942100",
    ...over,
  };
  const inserted = await database.db.insert(alerts).values(row).returning({ id: alerts.id });
  return inserted[0]?.id ?? 0;
}

async function notification(over: Partial<typeof notifications.$inferInsert>): Promise<void> {
  const alertId = await alert({ state: "resolved", resolvedAt: new Date() });
  const row = { alertId, transition: 1, reason: "first", channel: "chat", dedupeKey: "k", ...over } as const;
  await database.db.insert(notifications).values(row);
}

const ABOUT_SPIKES = ["fetch-advice", "raise-alerts"];

test.each<[string, () => Promise<unknown>, string[]]>([
  [
    "a minute that was not counted",
    () => database.db.insert(dirtyBuckets).values({ zoneId: 101, ruleId: "1", minute: new Date(0) }),
    ["roll-up-trends"],
  ],
  ["an open spike, with or without an alert", () => spike(), ABOUT_SPIKES],
  ["a spike that was over before anybody was told", () => spike(ago(HOUR_MS)), ABOUT_SPIKES],
  [
    "an alert that outlives its spike",
    async () => alert({ spikeId: await spike(ago(HOUR_MS)) }),
    ABOUT_SPIKES,
  ],
  ["a notification that nobody sent", () => notification({}), ["deliver-alerts"]],
  [
    "a retry whose time has come",
    () => notification({ attempts: 3, nextAttemptAt: ago(1_000) }),
    ["deliver-alerts"],
  ],
  [
    "a notification whose sender died",
    () => notification({ state: "sending", attempts: 1, nextAttemptAt: ago(1_000) }),
    ["deliver-alerts"],
  ],
  ["a channel that was reported as failing", () => alert({ kind: "self" }), ["deliver-alerts"]],
])("F2: %s is found", async (_what, leave, enqueued) => {
  await leave();
  expect(await sweep()).toEqual(enqueued);
});

test.each<[string, () => Promise<unknown>]>([
  ["nothing at all", async () => {}],
  ["a spike that was over long ago", () => spike(ago(25 * HOUR_MS))],
  [
    "a spike that was over and notified",
    async () => alert({ spikeId: await spike(ago(HOUR_MS)), state: "resolved", resolvedAt: new Date() }),
  ],
  ["a retry that is not due", () => notification({ nextAttemptAt: ago(-HOUR_MS) })],
  [
    "a notification that is being sent",
    () => notification({ state: "sending", nextAttemptAt: ago(-MINUTE_MS) }),
  ],
  ["a delivered notification", () => notification({ state: "delivered" })],
  ["a dead letter", () => notification({ state: "undeliverable" })],
])("%s enqueues nothing", async (_what, leave) => {
  await leave();
  expect(await sweep()).toEqual([]);
});

test("an old spike is looked after less often, a new one every time", async () => {
  const enqueued: string[] = [];
  let now = Date.now();
  const job = createSweepJob({ database, clock: () => now, enqueue: async (name) => enqueued.push(name) });
  const sweepFor = async (seconds: number) => {
    enqueued.length = 0;
    for (let at = 0; at < seconds; at += 10) {
      await job.run({} as never, signal);
      now += 10_000;
    }
    return ["fetch-advice", "raise-alerts"].map((name) => enqueued.filter((one) => one === name).length);
  };
  const id = await spike();
  expect(await sweepFor(120)).toEqual([2, 4]);

  await database.db.update(spikes).set({ openedAt: new Date() }).where(eq(spikes.id, id));
  expect(await sweepFor(120)).toEqual([2, 12]);
});

test("an open alert about a channel enqueues the delivery once a minute, not every time", async () => {
  const enqueued: string[] = [];
  let now = Date.now();
  const job = createSweepJob({ database, clock: () => now, enqueue: async (name) => enqueued.push(name) });
  await alert({ kind: "self" });
  for (const end = now + 120_000; now < end; now += 10_000) await job.run({} as never, signal);
  expect(enqueued).toEqual(["deliver-alerts", "deliver-alerts"]);
});

test("a failing enqueue is reported and does not prevent the others", async () => {
  await spike();
  await notification({});
  const enqueued: string[] = [];
  const enqueue = async (job: string) => {
    if (job === "fetch-advice") throw new Error("no queue");
    enqueued.push(job);
  };
  await expect(
    createSweepJob({ database, clock: Date.now, enqueue }).run({} as never, signal),
  ).rejects.toThrow("no queue");
  expect(enqueued.sort()).toEqual(["deliver-alerts", "raise-alerts"]);
});

test("F21: with the queue emptied at every step, the sweep alone brings a spike to its channel, once", async () => {
  const store = await createStore("postgres");
  onTestFinished(() => store.drop());
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const world = createDeliverWorld(database, receiver);
  const notifiers = webhooksOf(receiver.url, ["chat"]);
  const silent = defineJob({
    name: "fetch-advice",
    queue: "derive",
    payload: z.object({}),
    attempts: 1,
    timeoutMs: 1_000,
    run: async () => {},
  });
  // Nudges between the stages are lost as well.
  const afterAlerts = async () => {};
  const jobs: AnyJob[] = [
    silent,
    createRaiseAlertsJob({
      database,
      clock: Date.now,
      log,
      routing: () => routeToAll(["chat"]),
      zoneIds: [],
      afterAlerts,
    }),
    createDeliverAlertsJob({ database, notifiers, log }),
  ];
  await spike();
  const producer = openJobQueue(createBackend("postgres", store.url), jobs);
  for (const { name } of jobs) expect(await producer.enqueue(name, {}, `lost_${name}`)).toBe(true);
  await store.wipe();

  const jobQueue = openJobQueue(createBackend("postgres", store.url), jobs);
  const enqueuer = createEnqueuer({ jobQueue, jobs, onError() {} });
  const sweeper = createSweepJob({ database, clock: Date.now, enqueue: (job) => enqueuer.enqueue(job) });
  jobQueue.startWorkers();
  await sweeper.run({} as never, signal);
  await expect.poll(() => world.outbox()).toEqual(["1 first chat pending"]);
  expect(receiver.received).toEqual([]);
  await store.wipe();
  await sweeper.run({} as never, signal);
  await sweeper.run({} as never, signal);

  await expect.poll(() => world.outbox()).toEqual(["1 first chat delivered"]);
  expect(receiver.heard()).toEqual(["chat first"]);
  await database.db.update(spikes).set({ closedAt: sql`now()` }).where(eq(spikes.ruleId, "942100"));
});
