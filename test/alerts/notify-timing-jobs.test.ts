import { eq } from "drizzle-orm";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { channelStates } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { createDeliverAlertsJob } from "#jobs/delivery/deliver-alerts.ts";
import { POSTING } from "../delivery/support/receiver.ts";
import { type ReplyQueue, startReplyQueue } from "../platform/support/reply-queue.ts";
import { openAlertWorld } from "./alert-world.ts";
import { attackerOf, incidentOf, sourcesOf } from "./incident.ts";

const SECOND = 1 / 60;
const KINDS = ["slack", "slack-bot", "discord", "pagerduty"];
const ANSWER = { ok: true, channel: "C0123", ts: "1732197780.000100", id: "42" };
const { database, world } = await openAlertWorld();
let receivers: ReadonlyMap<string, ReplyQueue>;
let notifiers: ReadonlyMap<string, Notifier>;

beforeAll(async () => {
  receivers = new Map(await Promise.all(KINDS.map(async (kind) => [kind, await startReplyQueue()] as const)));
  notifiers = new Map(
    KINDS.map((kind) => {
      const notifier = POSTING[kind]?.(receivers.get(kind)?.url ?? "");
      if (notifier === undefined) throw new Error(kind);
      return [kind, { ...notifier, name: kind }];
    }),
  );
});
afterAll(async () => {
  for (const receiver of receivers.values()) await receiver.close();
});
beforeEach(async () => {
  await database.db.delete(channelStates);
  for (const receiver of receivers.values()) {
    receiver.requests.length = 0;
    for (let index = receiver.pending(); index < 12; index += 1) receiver.reply(200, ANSWER);
  }
});

const raiseAt = (minutes: number) => world.runAt(minutes, { channels: KINDS, notifiers });
const deliver = () =>
  createDeliverAlertsJob({ database, notifiers, log: pino({ level: "silent" }) }).run(
    {} as never,
    new AbortController().signal,
  );
/** Since the last call, as `METHOD last-of-the-path`. */
function heard(kind: string): string[] {
  const requests = receivers.get(kind)?.requests.splice(0) ?? [];
  return requests.map(({ method, path }) => `${method} ${path.replace(/\?.*/, "").split("/").at(-1)}`);
}
const rise = (severity: "error" | "critical") => database.db.update(spikes).set({ severity });

test("a rise in the first minute updates the message in place, and notifies again five minutes later", async () => {
  await world.openSpike();
  await raiseAt(1);
  await deliver();
  for (const kind of KINDS) expect([kind, heard(kind).length]).toEqual([kind, 1]);

  await rise("error");
  for (const seconds of [2, 12, 30]) await raiseAt(1 + seconds * SECOND);
  await deliver();
  expect(heard("slack")).toEqual([]);
  expect(heard("slack-bot")).toEqual(["POST chat.update"]);
  expect(heard("discord")).toEqual(["PATCH 42"]);
  expect(heard("pagerduty")).toHaveLength(1);
  const [alert] = await world.alerts();
  expect(alert).toMatchObject({
    transition: 2,
    details: { message: { severity: "error", reason: "worse" } },
  });

  await raiseAt(6);
  await raiseAt(6);
  await deliver();
  expect(heard("slack")).toHaveLength(1);
  expect(heard("slack-bot")).toEqual(["POST chat.update", "POST chat.postMessage"]);
  expect(heard("discord")).toHaveLength(2);
  expect(heard("pagerduty")).toEqual([]);
});

test("a pending notification is sent before the update in place that follows it", async () => {
  await world.openSpike();
  await raiseAt(1);
  await rise("error");
  await raiseAt(1 + 2 * SECOND);
  await deliver();
  await deliver();
  expect(heard("slack-bot")).toEqual(["POST chat.postMessage", "POST chat.update"]);
  expect(heard("slack")).toHaveLength(1);
  expect(heard("pagerduty")).toHaveLength(1);
});

test("a rise and a join that wait for the group interval are one message", async () => {
  const attackers = [attackerOf("203.0.113.1"), attackerOf("203.0.113.2", 2, { role: "joined" })];
  await world.openSpike(0, { ...incidentOf(...attackers.slice(0, 1)), severity: "warning" });
  await raiseAt(1);
  await rise("error");
  await raiseAt(1 + 2 * SECOND);
  await database.db.update(spikes).set({ sources: sourcesOf(attackers) });
  await raiseAt(1 + 200 * SECOND);
  const sent = async (channel: string) =>
    (await world.messages())
      .filter((row) => row.channel === channel)
      .map(({ message }) => `${message.reason} ${message.severity} ${message.attackers?.length}`);
  expect(await sent("slack")).toEqual(["first warning 1"]);
  expect(await sent("pagerduty")).toEqual(["first warning 1", "worse error 1"]);
  for (const minutes of [6, 7]) await raiseAt(minutes);
  expect(await sent("slack")).toEqual(["first warning 1", "join error 2"]);
  expect(await sent("pagerduty")).toEqual(["first warning 1", "worse error 1", "join error 2"]);
});

test("a stored alert has the current counts, and its headline says that it has calmed down", async () => {
  await world.openSpike(0, { severity: "error" });
  await raiseAt(1);
  const counts = { windowCount: 900, peak: 950 };
  await database.db.update(spikes).set(counts);
  await raiseAt(2);
  const described = async () => (await world.alerts())[0]?.details;
  expect(await described()).toMatchObject({
    message: {
      count: 900,
      peak: 950,
      reason: "first",
      headline: expect.stringContaining("900 events in 3 min"),
    },
  });
  await database.db.update(spikes).set({ windowCount: 3 });
  await raiseAt(3);
  expect(await described()).toMatchObject({
    message: { headline: expect.stringContaining("has calmed down for now, 3 events in 3 min, peak 950") },
  });
  expect(await world.outbox()).toHaveLength(KINDS.length);
});

test("a notification after an update in place keeps the reason and says that the alert fires again", async () => {
  const id = await world.openSpike(0, { severity: "error" });
  await raiseAt(1);
  await world.closeSpike(id, 2);
  await raiseAt(2);
  await world.openSpike(3, { severity: "error" });
  for (const minutes of [3, 6]) await raiseAt(minutes);
  const read = (await world.messages())
    .filter(({ channel }) => channel === "slack-bot")
    .map(({ message: { reason, isAgain, isQuiet } }) => [reason, isAgain, isQuiet]);
  expect(read).toEqual([
    ["first", undefined, undefined],
    ["resolved", undefined, undefined],
    ["again", true, true],
    ["worse", true, undefined],
  ]);
});

test("a channel that joins late gets `first`, and a channel that got the resolve reads that the alert fires again", async () => {
  const id = await world.openSpike();
  await world.runAt(1, { channels: ["slack"] });
  await world.closeSpike(id, 20);
  await world.runAt(21, { channels: KINDS });
  const second = await world.openSpike(30);
  await world.runAt(31, { channels: KINDS });
  await database.db.update(spikes).set({ severity: "critical" }).where(eq(spikes.id, second));
  await world.runAt(40, { channels: KINDS });
  const read = (await world.messages()).map(
    ({ channel, message }) => `${channel} ${message.reason}${message.isAgain === true ? " again" : ""}`,
  );
  expect(read.filter((line) => line.startsWith("slack "))).toEqual([
    "slack first",
    "slack resolved",
    "slack again again",
    "slack worse",
  ]);
  expect(read.filter((line) => line.startsWith("pagerduty "))).toEqual([
    "pagerduty first",
    "pagerduty worse",
  ]);
});
