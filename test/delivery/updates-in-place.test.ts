import { sql } from "drizzle-orm";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { lockChannelState, saveChannelState } from "#db/delivery/channel-states.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { DeliverAlertsDeps } from "#jobs/delivery/deliver-alerts.ts";
import { claimDeliveries } from "#jobs/delivery/send-delivery.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type MigratedDatabase } from "../db/migrated-database.ts";
import { type DeliverWorld, openDeliverWorld, type Receiver } from "./deliver-world.ts";
import { asKind, capabilitiesOf } from "./support/capabilities.ts";

let database: MigratedDatabase;
let receiver: Receiver;
let world: DeliverWorld;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, receiver, world } = opened);
  return opened.close;
});
beforeEach(() => world.clear());

/** Makes every `worse` an update in place. */
const makeUpdates = () =>
  database.db.execute(
    sql`update notifications set content = content || '{"isQuiet":true}' where reason = 'worse'`,
  );
const run = (over: Partial<DeliverAlertsDeps> = {}) => {
  const kinds = { chat: "slack-bot", mail: "email" } as const;
  const notifiers = [...world.notifiers(["chat", "mail"])].map(
    ([name, one]) => [name, asKind(one, kinds[name as keyof typeof kinds])] as const,
  );
  return world.run([], { notifiers: new Map(notifiers), ...over });
};
/** Uses the rate of the channel up to the share that is reserved for digests. */
const squeeze = () =>
  inTransaction(database, async ({ tx }) => {
    const { state, nowMs } = await lockChannelState(tx, "chat");
    await saveChannelState(tx, "chat", { ...state, spentUntilMs: nowMs + 50_000 });
  });
const claim = async () =>
  (await claimDeliveries(database, "chat", capabilitiesOf("slack-bot"))).deliveries.map(
    ({ digestKey, notifications }) => ({
      isDigest: digestKey !== null,
      transitions: notifications.map(({ transition }) => transition),
    }),
  );

test("a recovered channel is probed although an update in place waits behind a refused notification", async () => {
  receiver.status("chat", 503);
  const id = await world.raise(["first"]);
  await run();
  await world.add(id, 2, "worse");
  await makeUpdates();
  for (let turn = 0; turn < 12; turn += 1) {
    await run();
    await world.pass(20_000);
  }
  receiver.status("chat", 204);
  for (let turn = 0; turn < 10; turn += 1) {
    await run();
    await world.pass(MINUTE_MS);
  }
  expect(await world.outbox()).toEqual(["1 first chat delivered", "2 worse chat delivered"]);
});

test("updates in place behind waiting notifications do not delay another notification", async () => {
  for (let alert = 0; alert < 6; alert += 1) await world.raise(["first", "worse"]);
  await makeUpdates();
  await database.db.execute(sql`update notifications set last_error = 'x', next_attempt_at = now() + interval '10 minutes'
    where reason = 'first'`);
  await world.raise(["first"]);
  expect(await claim()).toEqual([{ isDigest: false, transitions: [1] }]);
});

test("a digest contains no update in place", async () => {
  for (let alert = 0; alert < 2; alert += 1) await world.raise(["first", "worse"]);
  await makeUpdates();
  await squeeze();
  expect(await claim()).toEqual([{ isDigest: true, transitions: [1, 1] }]);
  await database.db.execute(sql`update notifications set state = 'delivered' where state = 'sending'`);
  expect(await claim()).toEqual([{ isDigest: false, transitions: [2] }]);
});

test("a digest contains no end of an alert whose message can be edited", async () => {
  for (const reference of ["C1:1.1", null, null]) {
    const id = await world.raise(["first", "resolved"]);
    await database.db.execute(sql`update notifications set state = 'delivered', provider_reference = ${reference}
      where alert_id = ${id} and reason = 'first'`);
  }
  await squeeze();
  expect(await claim()).toEqual([{ isDigest: true, transitions: [2, 2] }]);
  const { deliveries } = await claimDeliveries(database, "chat", capabilitiesOf("slack-bot"));
  expect(deliveries).toMatchObject([{ digestKey: null, notifications: [{ providerReference: "C1:1.1" }] }]);
});

test("the fallback channel gets a notification and the update in place behind it as one message", async () => {
  receiver.status("chat", 503);
  const id = await world.raise(["first"]);
  await world.add(id, 2, "worse");
  await makeUpdates();
  for (let turn = 0; turn < 20; turn += 1) {
    await run({ fallback: { channel: "mail", afterMs: 10 * MINUTE_MS } });
    await world.pass(MINUTE_MS);
  }
  const heard = receiver.received.filter(
    ({ channel, message }) => channel === "mail" && message.alertId === id,
  );
  expect(heard.map(({ message }) => message.reason)).toEqual(["first"]);
});
