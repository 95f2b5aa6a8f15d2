import { sql } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { lockChannelState, saveChannelState } from "../../db/delivery/channel-states.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { claimDeliveries } from "../../jobs/delivery/claim-delivery.ts";
import type { DeliverAlertsDeps } from "../../jobs/delivery/deliver-alerts.ts";
import { MINUTE_MS } from "../../src/lib/units.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { createDeliverWorld, type Receiver, startReceiver } from "./deliver-world.ts";
import { asKind, capabilitiesOf } from "./support/capabilities.ts";

let database: MigratedDatabase;
let receiver: Receiver;
let world: ReturnType<typeof createDeliverWorld>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  receiver = await startReceiver();
  world = createDeliverWorld(database, receiver);
});
afterAll(async () => {
  await receiver.close();
  await database.drop();
});
beforeEach(() => world.clear());

/** What got worse changes the message that is there, without a sound. */
const hush = () =>
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
/** Its rate is spent but for what is kept back for digests. */
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

test("a channel that is back is probed although a change without a sound waits behind a page it refused", async () => {
  receiver.status("chat", 503);
  const id = await world.raise(["first"]);
  await run();
  await world.add(id, 2, "worse");
  await hush();
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

test("changes without a sound behind pages that wait keep no other page waiting", async () => {
  for (let alert = 0; alert < 6; alert += 1) await world.raise(["first", "worse"]);
  await hush();
  await database.db.execute(sql`update notifications set last_error = 'x', next_attempt_at = now() + interval '10 minutes'
    where reason = 'first'`);
  await world.raise(["first"]);
  expect(await claim()).toEqual([{ isDigest: false, transitions: [1] }]);
});

test("a digest, which is heard, holds no change without a sound", async () => {
  for (let alert = 0; alert < 2; alert += 1) await world.raise(["first", "worse"]);
  await hush();
  await squeeze();
  expect(await claim()).toEqual([{ isDigest: true, transitions: [1, 1] }]);
  await database.db.execute(sql`update notifications set state = 'delivered' where state = 'sending'`);
  expect(await claim()).toEqual([{ isDigest: false, transitions: [2] }]);
});

test("who stands in hears once of a page and of the change without a sound behind it", async () => {
  receiver.status("chat", 503);
  const id = await world.raise(["first"]);
  await world.add(id, 2, "worse");
  await hush();
  for (let turn = 0; turn < 20; turn += 1) {
    await run({ fallback: { channel: "mail", afterMs: 10 * MINUTE_MS } });
    await world.pass(MINUTE_MS);
  }
  const heard = receiver.received.filter(
    ({ channel, message }) => channel === "mail" && message.alertId === id,
  );
  expect(heard.map(({ message }) => message.reason)).toEqual(["worse"]);
});
