import { beforeAll, beforeEach, expect, test } from "vitest";
import { lockChannelState, saveChannelState } from "#db/delivery/channel-states.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { channelStates } from "#db/schema/notifications.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { email } from "#delivery/receivers/channels/email/email.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { type DeliverWorld, openDeliverWorld } from "./deliver-world.ts";
import { startMailServer } from "./support/mail-server.ts";

let database: MigratedDatabase;
let world: DeliverWorld;
let server: Awaited<ReturnType<typeof startMailServer>>;
let mail: Notifier;
let isFull = true;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, world } = opened);
  return opened.close;
});
beforeEach(async () => {
  await world.clear();
  isFull = true;
  server = await startMailServer({
    onRcptTo({ address }, _session, callback) {
      const full = Object.assign(new Error("full"), { responseCode: 452 });
      callback(isFull && address.toLowerCase().startsWith("full") ? full : null);
    },
  });
  mail = email.open({
    name: "mail",
    host: "127.0.0.1",
    port: server.port,
    tls: "none",
    from: "alerts@longwatch.example",
    to: ["on-call@example.com", "Full@Example.com"],
    clock: Date.now,
    network: { allowPrivateNetworks: true },
    timeoutMs: 5_000,
  });
  return () => server.stop();
});

const run = () => world.run([], { notifiers: new Map([["mail", mail]]) });
async function spend(minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    await run();
    await world.pass(MINUTE_MS);
  }
}

test("a deferred recipient gets the mail later, and nobody gets it twice", async () => {
  await world.raise(["first"], ["mail"]);
  await spend(20);
  expect(server.mails.map(({ to }) => to)).toEqual([["on-call@example.com"]]);
  expect(await database.db.select().from(channelStates)).toMatchObject([{ state: "closed", failures: 0 }]);
  const [row] = await world.rows();
  expect(row?.lastError).toBe("RECIPIENT_DEFERRED: 127.0.0.1 deferred 1 of 2 recipients");

  isFull = false;
  await spend(16);
  expect(server.mails.map(({ to }) => to)).toEqual([["on-call@example.com"], ["Full@example.com"]]);
  const [first, second] = server.mails.map(({ raw }) => raw);
  expect(/^Message-ID: .*$/im.exec(second ?? "")?.[0]).toBe(/^Message-ID: .*$/im.exec(first ?? "")?.[0]);
  expect(await world.outbox()).toEqual(["1 first mail delivered"]);
});

test("a digest goes again to the deferred recipient only, and is not taken apart", async () => {
  await inTransaction(database, async ({ tx }) => {
    const { state, nowMs } = await lockChannelState(tx, "mail");
    await saveChannelState(tx, "mail", { ...state, spentUntilMs: nowMs + 50_000 });
  });
  for (let alert = 0; alert < 3; alert += 1) await world.raise(["first"], ["mail"]);
  await spend(20);
  expect(server.mails.map(({ to }) => to)).toEqual([["on-call@example.com"]]);
  isFull = false;
  await spend(16);
  expect(server.mails.map(({ to }) => to)).toEqual([["on-call@example.com"], ["Full@example.com"]]);
  expect(new Set(await world.outbox())).toEqual(new Set(["1 first mail delivered"]));
});

test("a deferred recipient delays neither other alerts nor the later messages of its alert", async () => {
  const id = await world.raise(["first"], ["mail"]);
  await spend(20);
  for (let alert = 0; alert < 5; alert += 1) await world.raise(["first"], ["mail"]);
  await world.add(id, 2, "advice", ["mail"]);
  await run();
  expect(server.mails).toHaveLength(7);
  await world.add(id, 3, "resolved", ["mail"]);
  await run();
  expect(server.mails).toHaveLength(8);
  expect((await world.outbox()).filter((line) => !line.startsWith("1"))).toEqual([
    "2 advice mail undeliverable",
    "3 resolved mail pending",
  ]);

  // The first message is out of date for the recipient that never had it.
  isFull = false;
  await spend(16);
  const late = server.mails.filter(({ to }) => to[0] === "Full@example.com");
  expect(late).toHaveLength(6);
  expect(late.filter(({ raw }) => raw.includes("X-Longwatch-State: resolved"))).toHaveLength(1);
});
