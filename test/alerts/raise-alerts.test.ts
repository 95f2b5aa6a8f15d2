import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import { at, openAlertWorld } from "./alert-world.ts";
import { NOW } from "./support.ts";

const { database, world } = await openAlertWorld();

test("a new spike notifies every channel at once, with its advice pending, and only once", async () => {
  const spikeId = await world.openSpike();
  let enqueues = 0;
  const afterAlerts = async () => void (enqueues += 1);
  await world.runAt(1, { afterAlerts });
  await world.runAt(2, { afterAlerts });

  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager"]);
  expect(await world.alerts()).toMatchObject([
    { state: "firing", transition: 1, spikeId, firedAt: at(0), kind: "spike", ruleId: "942100" },
  ]);
  const [chat, pager] = await world.messages();
  expect(chat?.message).toMatchObject({
    alertId: (await world.alerts())[0]?.id,
    reason: "first",
    advice: { state: "pending", text: null },
    startedAt: NOW,
  });
  expect(chat?.message.dedupeKey).toBe(pager?.message.dedupeKey);
  expect(chat?.dedupeKey).not.toBe(pager?.dedupeKey);
  expect(enqueues).toBe(1);
});

test("ten runs at the same time raise every alert once", async () => {
  for (const ruleId of ["941100", "942100", "943100"]) await world.openSpike(0, { ruleId });
  await Promise.all(Array.from({ length: 10 }, () => world.runAt(1)));
  expect(await world.alerts()).toHaveLength(3);
  expect((await world.outbox()).sort()).toEqual([
    ...Array<string>(3).fill("1 first chat"),
    ...Array<string>(3).fill("1 first pager"),
  ]);
});

test("ten concurrent runs notify of a missed attack and its end once", async () => {
  await world.openSpike(0, { closedAt: at(20) });
  await Promise.all(Array.from({ length: 10 }, () => world.runAt(25)));
  expect(await world.outbox()).toEqual([
    "1 first chat",
    "1 first pager",
    "2 resolved chat",
    "2 resolved pager",
  ]);
  expect(await world.alerts()).toMatchObject([{ state: "resolved", transition: 2 }]);
});

test("ten concurrent runs write one resolve", async () => {
  const id = await world.openSpike();
  await world.runAt(1);
  await world.closeSpike(id, 20);
  await Promise.all(Array.from({ length: 10 }, () => world.runAt(21)));
  expect((await world.outbox()).slice(2)).toEqual(["2 resolved chat", "2 resolved pager"]);
});

test("later advice notifies as an update of the same episode", async () => {
  await world.openSpike();
  await world.runAt(1);
  await world.answer(1);
  await Promise.all([world.runAt(2), world.runAt(2), world.runAt(2)]);
  await world.runAt(3);
  expect((await world.outbox()).slice(2)).toEqual(["2 advice chat", "2 advice pager"]);
  const sent = await world.messages();
  expect(sent.at(-1)?.message.advice).toEqual({
    state: "present",
    text: "Keep the rule enabled.",
    reason: null,
  });
  expect(new Set(sent.map(({ message }) => message.dedupeKey)).size).toBe(1);
  expect(new Set(sent.map(({ dedupeKey }) => dedupeKey)).size).toBe(4);
});

test("advice that is there already goes out with the first message", async () => {
  await world.answer(-30);
  await world.openSpike();
  await world.runAt(1);
  await world.runAt(2);
  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager"]);
  expect((await world.messages())[0]?.message.advice.state).toBe("present");
});

test("missing advice is stored with the alert and notifies only with the next transition", async () => {
  const id = await world.openSpike();
  await world.runAt(1);
  await world.answer(1, "limit_reached.ai_recommendation");
  await world.runAt(2);
  expect(await world.outbox()).toHaveLength(2);
  const reason = expect.stringContaining("limit_reached.ai_recommendation");
  expect(await world.alerts()).toMatchObject([
    { transition: 1, details: { message: { advice: { state: "unavailable", text: null, reason } } } },
  ]);
  await world.closeSpike(id, 20);
  await world.runAt(21);
  expect((await world.messages()).at(-1)?.message).toMatchObject({
    reason: "resolved",
    advice: { state: "unavailable" },
  });
});

test("a channel that was never notified of an alert is notified by its next transition, but not by its end", async () => {
  const id = await world.openSpike();
  await world.runAt(1, { channels: ["chat"] });
  await world.closeSpike(id, 20);
  await world.runAt(21);
  expect(await world.outbox()).toEqual(["1 first chat", "2 resolved chat"]);

  await world.openSpike(100);
  await world.runAt(101, { channels: ["chat"] });
  await database.db.update(spikes).set({ severity: "critical" });
  await world.runAt(102);
  expect((await world.outbox()).slice(2)).toEqual(["1 first chat", "2 worse chat", "2 first pager"]);
});

test("a killed run leaves no partial alert, and the next run raises the alert once", async () => {
  await world.openSpike();
  const ignored = () => {};
  const doomed = createDatabase({ url: database.url, max: 1, applicationName: "doomed", onError: ignored });
  await inTransaction(database, async ({ tx }) => {
    // Its alert is written by then, its outbox rows are not.
    await tx.execute(sql`lock table ${notifications} in access exclusive mode`);
    const running = world.runAt(1, { database: doomed });
    running.catch(() => {});
    const waiting = sql`datname = current_database() and application_name = 'doomed' and wait_event_type = 'Lock'`;
    // Outside the transaction, which would see one and the same activity for as long as it lasts.
    const count = () => database.db.execute(sql`select pid from pg_stat_activity where ${waiting}`);
    await expect.poll(async () => (await count()).rows.length).toBe(1);
    await database.db.execute(sql`select pg_terminate_backend(pid) from pg_stat_activity where ${waiting}`);
    await expect(running).rejects.toThrow("notifications");
  });
  await doomed.close();
  expect([await world.alerts(), await world.outbox()]).toEqual([[], []]);

  await Promise.all([world.runAt(2), world.runAt(2)]);
  expect(await world.alerts()).toHaveLength(1);
  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager"]);
});

test("an unreadable alert does not delay the other alerts, and fails the run", async () => {
  await world.openSpike(0, { ruleId: "941100" });
  await world.runAt(1);
  await database.db.update(alerts).set({ transitions: sql`'[{"reason": 5}]'::jsonb` });
  await world.openSpike(2, { ruleId: "942100" });
  await expect(world.runAt(3)).rejects.toThrow("reason");
  expect((await world.alerts()).map(({ ruleId }) => ruleId)).toEqual(["941100", "942100"]);
  expect(await world.outbox()).toHaveLength(4);
});

test("old spikes that were over long ago are left alone", async () => {
  await world.openSpike(0, { closedAt: at(20) });
  await world.runAt(20 + 24 * 60);
  expect(await world.alerts()).toEqual([]);
});

test("without channels an alert is raised once and notifies no channel", async () => {
  await world.openSpike();
  await world.runAt(1, { channels: [] });
  await world.runAt(2, { channels: [] });
  expect(await world.alerts()).toMatchObject([{ transition: 1, state: "firing" }]);
  expect(await world.outbox()).toEqual([]);
});
