import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { actOnAlerts } from "#alerts/operations/act-on-alerts.ts";
import { showAlert } from "#alerts/operations/alert-detail.ts";
import { lockAlert } from "#db/alerts/unwatched-zones.ts";
import { readFailingChannels } from "#db/delivery/channel-states.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { channelStates, notifications } from "#db/schema/notifications.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { createDeliverAlertsJob } from "#jobs/delivery/deliver-alerts.ts";
import { ANSWERS, PLAIN_ANSWER, POSTING } from "../delivery/support/receiver.ts";
import { acknowledgeByHand } from "../operations/act-by-hand.ts";
import { performOn } from "../operations/perform-on.ts";
import { type ReplyQueue, startReplyQueue } from "../platform/support/reply-queue.ts";
import { openAlertWorld } from "./alert-world.ts";
import { NOW } from "./support.ts";

const CHANNELS = Object.keys(POSTING);
const never = new AbortController().signal;
const { database, world } = await openAlertWorld();
let receivers: ReadonlyMap<string, ReplyQueue>;
let notifiers: ReadonlyMap<string, Notifier>;

beforeAll(async () => {
  receivers = new Map(
    await Promise.all(CHANNELS.map(async (kind) => [kind, await startReplyQueue()] as const)),
  );
  notifiers = new Map(
    CHANNELS.map((kind) => {
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
  for (const [kind, receiver] of receivers) {
    const { body } = ANSWERS[kind] ?? PLAIN_ANSWER;
    receiver.requests.length = 0;
    for (let index = receiver.pending(); index < 8; index += 1) receiver.reply(200, body);
  }
});

const deliver = () =>
  createDeliverAlertsJob({ database, notifiers, log: pino({ level: "silent" }) }).run({} as never, never);
const asked = (kind: string) =>
  (receivers.get(kind)?.requests ?? []).map(({ method, path, body }) => ({ method, path, body }));

const ALICE = { by: "alice", now: NOW };
const ask = (input: Parameters<typeof performOn<typeof actOnAlerts.input, typeof actOnAlerts.output>>[2]) =>
  performOn(database, actOnAlerts, input, ALICE);

async function fire(): Promise<number> {
  await world.openSpike(0, { severity: "critical" });
  await world.runAt(1, { channels: CHANNELS });
  const [alert] = await world.alerts();
  return alert?.id ?? 0;
}

/** The channels that update one message per alert. */
const EDITING = ["slack-bot", "discord", "mattermost", "telegram", "ntfy"];

test("an acknowledgement updates messages in place, and is sent to no channel that would notify", async () => {
  const alertId = await fire();
  await deliver();
  const before = new Map(CHANNELS.map((kind) => [kind, asked(kind).length]));
  const act = { alertId, by: "alice <!channel>", note: null, atMs: NOW };
  expect(await acknowledgeByHand(database, act)).toMatchObject({ result: "done", channels: CHANNELS });
  await deliver();
  await deliver();

  const news = new Map(CHANNELS.map((kind) => [kind, asked(kind).slice(before.get(kind))]));
  for (const kind of ["webhook", "slack", "teams", "alertmanager", "google-chat", "pushover"])
    expect([kind, news.get(kind)]).toEqual([kind, []]);
  const [event, edit, change, genie] = ["pagerduty", "slack-bot", "discord", "opsgenie"].map(
    (kind) => news.get(kind)?.[0],
  );
  expect(JSON.parse(event?.body ?? "")).toMatchObject({ event_action: "acknowledge" });
  expect(edit?.path).toContain("chat.update");
  expect(edit?.body).toContain("CRITICAL acknowledged");
  expect(edit?.body).toContain("Acknowledged by alice");
  expect(edit?.body).not.toContain("<!channel>");
  expect(change).toMatchObject({ method: "PATCH", path: expect.stringContaining("/messages/42") });
  expect(change?.body).toContain("Acknowledged by alice");
  expect(genie?.path).toMatch(/\/acknowledge\?identifierType=alias$/);
  for (const kind of ["pagerduty", "opsgenie", "jira-service-management", ...EDITING])
    expect(news.get(kind)).toHaveLength(1);
});

test("an assignment updates messages in place, notifies nobody, and later messages say who has the alert", async () => {
  const alertId = await fire();
  await deliver();
  const before = new Map(CHANNELS.map((kind) => [kind, asked(kind).length]));
  const assign = () => ask({ act: "assign", ids: [alertId], to: "bob <!here>", note: "yours" });
  const results = (await Promise.all([assign(), assign(), assign()])).map(({ items }) => items[0]?.result);
  expect(results.map(String).sort()).toEqual(["done", "unchanged", "unchanged"]);
  await deliver();
  await deliver();
  for (const kind of CHANNELS)
    expect([kind, asked(kind).length - (before.get(kind) ?? 0)]).toEqual([
      kind,
      Number(EDITING.includes(kind)),
    ]);
  const edit = asked("slack-bot").at(-1);
  expect(edit?.path).toContain("chat.update");
  expect(edit?.body).toContain("CRITICAL assigned");
  expect(edit?.body).not.toContain("<!here>");

  await acknowledgeByHand(database, { alertId, by: "alice", note: null, atMs: NOW });
  await deliver();
  expect(asked("slack-bot").at(-1)?.body).toContain("assigned to bob");
  await ask({ act: "assign", ids: [alertId], to: "" });
  expect(await performOn(database, showAlert, { id: alertId, message: "false" }, ALICE)).toMatchObject({
    assignedTo: null,
  });
});

test("a comment is added once, also to an alert that is over, and is sent to no channel", async () => {
  const alertId = await fire();
  await world.closeSpike((await world.alerts())[0]?.spikeId ?? 0, 20);
  await world.runAt(21, { channels: CHANNELS });
  const before = await world.outbox();
  const comment = () => ask({ act: "comment", ids: [alertId], note: "a test of our own" });
  const results = [await comment(), await comment()].map(({ items }) => items[0]?.result);
  expect(results).toEqual(["noted", "unchanged"]);
  await world.runAt(22, { channels: CHANNELS });
  expect(await world.outbox()).toEqual(before);
  const { transitions } = await performOn(database, showAlert, { id: alertId, message: "false" }, ALICE);
  expect(transitions.at(-1)).toMatchObject({
    reason: "commented",
    state: "resolved",
    note: "a test of our own",
  });
  expect(await ask({ act: "assign", ids: [alertId] })).toMatchObject({
    items: [{ result: "refused", detail: `Alert ${alertId} is already resolved.` }],
  });
});

test("concurrent acknowledgements write one dedupe key per channel", async () => {
  const alertId = await fire();
  const acts = ["alice", "bob", "carol"].map((by) =>
    acknowledgeByHand(database, { alertId, by, note: null, atMs: NOW }),
  );
  const results = (await Promise.all(acts)).map(({ result }) => result);
  expect(results.sort()).toEqual(["done", "unchanged", "unchanged"]);
  const rows = (await database.db.select().from(notifications)).filter(
    ({ reason }) => reason === "acknowledged",
  );
  expect(rows.map(({ channel }) => channel).sort()).toEqual([...CHANNELS].sort());
  expect(new Set(rows.map(({ dedupeKey }) => dedupeKey)).size).toBe(CHANNELS.length);
});

test("a channel that shows none has not failed, and the end follows as ever", async () => {
  const alertId = await fire();
  await deliver();
  await acknowledgeByHand(database, { alertId, by: "alice", note: null, atMs: NOW });
  await deliver();
  const failing = await readFailingChannels(database.db, { channels: CHANNELS, graceMs: 0 });
  expect(failing).toEqual([]);
  const [spike] = (await world.alerts()).map(({ spikeId }) => spikeId ?? 0);
  await world.closeSpike(spike ?? 0, 20);
  await world.runAt(21, { channels: CHANNELS });
  await deliver();
  const states = (await database.db.select().from(notifications)).filter(
    ({ reason }) => reason === "resolved",
  );
  expect(states.map(({ state }) => state)).toEqual(CHANNELS.map(() => "delivered"));
});

test("an acknowledgement of an alert that was resolved meanwhile is not sent", async () => {
  const alertId = await fire();
  await deliver();
  await acknowledgeByHand(database, { alertId, by: "alice", note: null, atMs: NOW });
  const [spike] = (await world.alerts()).map(({ spikeId }) => spikeId ?? 0);
  await world.closeSpike(spike ?? 0, 20);
  await world.runAt(21, { channels: CHANNELS });
  await deliver();
  const actions = asked("pagerduty").map(({ body }) => JSON.parse(body).event_action);
  expect(actions).toEqual(["trigger", "resolve"]);
});

test("while a person acts on an alert, its spike is locked and no other transition is written", async () => {
  const id = await fire();
  const isFree = async (table: string) =>
    (await database.pool.query(`select from ${table} for no key update skip locked`)).rowCount === 1;
  expect([await isFree("spikes"), await isFree("alerts")]).toEqual([true, true]);
  await inTransaction(database, async ({ tx }) => {
    expect(await lockAlert(tx, id)).toMatchObject({ id });
    expect([await isFree("spikes"), await isFree("alerts")]).toEqual([false, false]);
  });
});
