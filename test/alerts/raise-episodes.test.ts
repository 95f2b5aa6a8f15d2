import { sql } from "drizzle-orm";
import { expect, onTestFinished, test } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { alerts } from "#db/schema/alerts.ts";
import { spikes } from "#db/schema/spikes.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { makeEvent, storeAll } from "../detection/trend-support.ts";
import { at, openAlertWorld } from "./alert-world.ts";
import { NOW } from "./support.ts";

const { database, world } = await openAlertWorld();

test("a second episode later is another alert; one within half an hour is the same", async () => {
  const first = await world.openSpike();
  await world.runAt(1);
  await world.closeSpike(first, 20);
  await world.runAt(21);
  const second = await world.openSpike(45);
  await world.runAt(46);
  expect(await world.alerts()).toMatchObject([
    { state: "firing", transition: 3, spikeId: second, resolvedAt: null },
  ]);
  await world.closeSpike(second, 60);
  await world.runAt(61);
  await world.runAt(90);
  await world.openSpike(200);
  await world.runAt(201);
  expect(await world.alerts()).toMatchObject([
    { state: "resolved", transition: 4, firedAt: at(0) },
    { state: "firing", transition: 1, firedAt: at(200) },
  ]);
  const keys = (await world.messages()).map(({ message }) => message.dedupeKey);
  expect(new Set(keys.slice(0, 8)).size).toBe(1);
  expect(new Set(keys).size).toBe(2);
});

test("a message says until when its zone is in its first day", async () => {
  await ensurePartitions(database, [toDay(NOW)]);
  onTestFinished(async () => void (await database.pool.query("truncate waf_events")));
  await storeAll(database, [makeEvent({ occurredAt: NOW - 3 * HOUR_MS, logId: "first" })]);
  const spike = await world.openSpike();
  await world.runAt(1);
  const [first] = await world.messages();
  expect(first?.message.details?.[0]).toBe(
    "learning until Saturday 12:30 UTC: only attacks over the fixed lines notify",
  );
  await world.closeSpike(spike, 25 * 60);
  await world.runAt(25 * 60 + 1);
  const last = (await world.messages()).at(-1)?.message;
  expect(last?.reason).toBe("resolved");
  expect(JSON.stringify(last)).not.toContain("learning until");
});

test("a flap within the hold is another wave of the same alert, without an end between", async () => {
  await world.closeSpike(await world.openSpike(), 20);
  await world.runAt(20);
  await world.closeSpike(await world.openSpike(30), 50);
  await world.runAt(31);
  await world.runAt(51);
  const before = await world.outbox();
  const third = await world.openSpike(60);
  await world.runAt(61);
  expect((await world.outbox()).slice(before.length)).toEqual(["4 again chat", "4 again pager"]);
  expect(await world.alerts()).toMatchObject([{ state: "firing", spikeId: third }]);
});

test("a new rule's burst that grows into a spike gets worse within its alert", async () => {
  await world.openSpike(0, { kind: "new-rule", severity: "critical" });
  await world.runAt(1);
  await database.db.update(spikes).set({ kind: "spike" });
  await world.runAt(2);
  expect(
    (await world.messages()).map(({ message }) => [message.reason, message.kind, message.severity]),
  ).toEqual([
    ["first", "new-rule", "info"],
    ["first", "new-rule", "info"],
    ["worse", "spike", "critical"],
    ["worse", "spike", "critical"],
  ]);
});

test("a silenced alert is stored without a notification, and notifies if the silence ends before the attack", async () => {
  await world.silence({ zone: [101], rule: ["942*"] }, 60);
  await world.openSpike();
  await world.runAt(1);
  await world.runAt(59);
  expect(await world.alerts()).toMatchObject([{ state: "firing", transition: 1 }]);
  expect(await world.outbox()).toEqual([]);
  await world.runAt(60);
  expect(await world.outbox()).toEqual(["2 first chat", "2 first pager"]);
});

test("a silenced attack that ends under the silence notifies no channel", async () => {
  await world.silence({ severity: ["warning"] }, 600);
  const id = await world.openSpike();
  await world.runAt(1);
  await world.closeSpike(id, 20);
  await world.runAt(21);
  expect(await world.alerts()).toMatchObject([{ state: "resolved", transition: 2 }]);
  expect(await world.outbox()).toEqual([]);
});

test("a silence that cannot be read holds nothing back", async () => {
  await world.silence({}, 60);
  await world.silence({ zones: [101] }, 60);
  await world.openSpike();
  await world.runAt(1);
  expect(await world.outbox()).toHaveLength(2);
});

test("an acknowledged alert stays so, does not repeat, and resolves", async () => {
  const id = await world.openSpike();
  await world.runAt(1);
  const acknowledgedAt = at(5);
  const entry = { transition: 2, at: NOW + 5 * MINUTE_MS, reason: "acknowledged", state: "acknowledged" };
  await database.db.update(alerts).set({
    state: "acknowledged",
    acknowledgedAt,
    acknowledgedBy: "ann",
    transition: 2,
    transitions: sql`${alerts.transitions} || ${JSON.stringify([entry])}::jsonb`,
  });
  await world.runAt(9 * 60);
  expect(await world.outbox()).toHaveLength(2);
  await world.closeSpike(id, 600);
  await world.runAt(601);
  expect((await world.outbox()).slice(2)).toEqual(["3 resolved chat", "3 resolved pager"]);
  await world.openSpike(610);
  await world.runAt(611);
  expect(await world.alerts()).toMatchObject([
    { state: "firing", acknowledgedAt: null, acknowledgedBy: null },
  ]);
});

test("an attack of a day is repeated every four hours", async () => {
  await world.openSpike();
  for (let minute = 0; minute <= (24 * HOUR_MS) / MINUTE_MS; minute += 30)
    await world.runAt(minute, { channels: ["chat"] });
  expect(await world.outbox()).toEqual([
    "1 first chat",
    ...[2, 3, 4, 5, 6, 7].map((transition) => `${transition} repeat chat`),
  ]);
});
