import { eq, sql } from "drizzle-orm";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { readUnfinishedWork } from "#db/health/requested-runs.ts";
import { alerts } from "#db/schema/alerts.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { type ReplyQueue, startReplyQueue } from "../platform/support/reply-queue.ts";
import { type DeliverWorld, openDeliverWorld, type Receiver } from "./deliver-world.ts";
import { NOW, POSTING } from "./support/receiver.ts";

let database: MigratedDatabase;
let receiver: Receiver;
let world: DeliverWorld;
let prom: ReplyQueue;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, receiver, world } = opened);
  return opened.close;
});
beforeEach(async () => {
  await world.clear();
  prom = await startReplyQueue();
  return () => prom.close();
});

/** An Alertmanager named `prom`, and the webhook `chat`, which gets what Alertmanager does not accept. */
function run() {
  const opened = POSTING["alertmanager"]?.(prom.url);
  if (opened === undefined) throw new Error("no alertmanager");
  const notifiers = new Map([...world.notifiers(["chat"]), ["prom", { ...opened, name: "prom" }]]);
  return world.run([], { notifiers, fallback: { channel: "chat", afterMs: 10 * MINUTE_MS } });
}
const ends = () =>
  prom.requests.map(({ body }) => {
    const [alert] = JSON.parse(body) as { labels: { fingerprint: string }; endsAt: string }[];
    return `${alert?.labels.fingerprint} ${Date.parse(alert?.endsAt ?? "") > NOW ? "fires" : "ends"}`;
  });

test("an acknowledged alert is sent to Alertmanager again before it ends there, until it is resolved", async () => {
  const id = await world.raise(["first"], ["prom"]);
  await database.db.update(alerts).set({ state: "acknowledged" }).where(eq(alerts.id, id));
  for (let answer = 0; answer < 4; answer += 1) prom.reply(200, "");
  await run();
  await world.pass(29 * MINUTE_MS);
  await run();
  expect(ends()).toEqual(["f1c0ffee fires"]);
  const isDue = async () => (await readUnfinishedWork(database.db)).channelUpkeep;
  expect(await isDue()).toBe(false);
  for (let renewal = 0; renewal < 2; renewal += 1) {
    await world.pass(31 * MINUTE_MS);
    expect(await isDue()).toBe(true);
    await run();
  }
  expect(ends()).toEqual(Array(3).fill("f1c0ffee fires"));

  await database.db.update(alerts).set({ state: "resolved", resolvedAt: new Date() });
  await world.add(id, 2, "resolved", ["prom"]);
  await run();
  await world.pass(2 * HOUR_MS);
  await run();
  expect(ends()).toEqual([...Array(3).fill("f1c0ffee fires"), "f1c0ffee ends"]);
  expect(await world.outbox()).toEqual(["1 first prom delivered", "2 resolved prom delivered"]);
});

test("a renewal that fails is tried again and notifies nobody else", async () => {
  await world.raise(["first", "worse"], ["prom"]);
  prom.reply(200, "");
  await run();
  for (let attempt = 0; attempt < 8; attempt += 1) prom.reply(500, "");
  for (let turn = 0; turn < 2; turn += 1) {
    await world.pass(31 * MINUTE_MS);
    await run();
  }
  expect(receiver.heard()).toEqual([]);
  expect(await world.outbox()).toEqual(["1 first prom undeliverable", "2 worse prom pending"]);
});

test("a rise behind a failed renewal ends the alert under its old severity", async () => {
  const id = await world.raise(["first"], ["prom"]);
  await database.db.execute(sql`update notifications set content = content || '{"severity":"warning"}'`);
  for (const status of [200, 500, 200]) prom.reply(status, "");
  await run();
  await world.pass(31 * MINUTE_MS);
  await run();
  await world.add(id, 2, "worse", ["prom"]);
  await world.pass(MINUTE_MS);
  await run();
  const sent = JSON.parse(prom.requests.at(-1)?.body ?? "") as { labels: { severity: string } }[];
  expect(sent.map(({ labels }) => labels.severity)).toEqual(["warning", "critical"]);
});

test("other channels get no message again", async () => {
  await world.raise(["first"]);
  await run();
  await world.pass(48 * HOUR_MS);
  await run();
  expect(receiver.heard()).toEqual(["chat first"]);
});
