import { pino } from "pino";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { channelStates, notifications } from "#db/schema/notifications.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { createDeliverAlertsJob } from "#jobs/delivery/deliver-alerts.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { type ReplyQueue, startReplyQueue } from "../platform/support/reply-queue.ts";
import { type DeliverWorld, openDeliverWorld } from "./deliver-world.ts";
import { incidentWith } from "./support/messages.ts";
import { POSTING } from "./support/receiver.ts";

let database: MigratedDatabase;
let chat: ReplyQueue;
let world: DeliverWorld;
let notifier: Notifier;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, world } = opened);
  return opened.close;
});
beforeEach(async () => {
  await world.clear();
  chat = await startReplyQueue();
  const opened = POSTING["slack"]?.(chat.url);
  if (opened === undefined) throw new Error("no slack");
  notifier = { ...opened, name: "chat" };
  const alertId = await world.raise(["first"]);
  await database.db.update(notifications).set({ content: incidentWith(5_000, { alertId }) });
  return () => chat.close();
});

function deliver(signal = new AbortController().signal) {
  const notifiers = new Map([["chat", notifier]]);
  const log = pino({ level: "silent" });
  return createDeliverAlertsJob({ database, notifiers, log, random: () => 0.999 }).run({} as never, signal);
}

const heads = () => chat.requests.map(({ body }) => (JSON.parse(body) as { text: string }).text);
const PAGE = expect.stringContaining("2 attackers in zone 101");
const part = (number: number) => `zone 101 · rules of the incident (${number} of 4)`;

test("a list that fails midway continues in any replica, and the first message is sent once", async () => {
  for (const status of [200, 200, 503]) chat.reply(status, "ok");
  await deliver();
  expect(await world.outbox()).toEqual(["1 first chat pending"]);
  for (let index = 0; index < 3; index += 1) chat.reply(200, "ok");
  await world.pass(5 * MINUTE_MS);
  await deliver();

  expect(heads()).toEqual([PAGE, part(1), part(2), part(2), part(3), part(4)]);
  expect(await world.rows()).toMatchObject([{ state: "delivered", providerReference: null }]);
});

test("a stop in the middle of a list keeps the record of the sent parts", async () => {
  const stopping = new AbortController();
  chat.reply(200, "ok");
  chat.reply(200, "ok");
  chat.handle(() => stopping.abort(new Error("stopping")));
  await expect(deliver(stopping.signal)).rejects.toThrow("stopping");
  for (let index = 0; index < 3; index += 1) chat.reply(200, "ok");
  await deliver();

  expect(heads()).toEqual([PAGE, part(1), part(2), part(2), part(3), part(4)]);
  expect(await world.outbox()).toEqual(["1 first chat delivered"]);
});

test("every message of a list counts against the channel's rate", async () => {
  for (let index = 0; index < 5; index += 1) chat.reply(200, "ok");
  const startedAt = Date.now();
  await deliver();
  const [state] = await database.db.select().from(channelStates);
  // Thirty a minute: five messages are ten seconds of it.
  const spentMs = (state?.spentUntil?.getTime() ?? 0) - startedAt;
  expect(spentMs).toBeGreaterThan(9_000);
  expect(spentMs).toBeLessThan(10_000 + (Date.now() - startedAt) + 1_000);
});
