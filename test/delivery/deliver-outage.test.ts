import { sql } from "drizzle-orm";
import { pino } from "pino";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  enableChannels,
  hastenWaiting,
  lockChannelState,
  saveChannelState,
} from "#db/delivery/channel-states.ts";
import { replayDeliveries } from "#db/delivery/deliveries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { channelStates, notifications } from "#db/schema/notifications.ts";
import { createDeliverAlertsJob } from "#jobs/delivery/deliver-alerts.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { type DeliverWorld, openDeliverWorld, type Receiver } from "./deliver-world.ts";

let database: MigratedDatabase;
let receiver: Receiver;
let world: DeliverWorld;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, receiver, world } = opened);
  return opened.close;
});

beforeEach(() => world.clear());

const stateOf = async (channel: string) =>
  (await database.db.select().from(channelStates)).find((row) => row.channel === channel);

describe("the circuit of a channel", () => {
  test("opens after five failures; then one message at a time probes it, of however many and by whomever", async () => {
    for (let alert = 0; alert < 30; alert += 1) await world.raise(["first"]);
    receiver.status("chat", 500);
    await world.run();
    await world.run();
    expect(await stateOf("chat")).toMatchObject({ state: "open", failures: 8 });
    const before = receiver.received.length;
    await world.run();
    expect(receiver.received).toHaveLength(before);
    await world.pass(30_000);
    await Promise.all([world.run(), world.run(), world.run()]);

    expect(receiver.received).toHaveLength(before + 1);
    expect(await stateOf("chat")).toMatchObject({
      state: "open",
      lastError: expect.stringMatching(/^ENDPOINT_UNAVAILABLE: /),
    });
  });

  test("closes with the first message that is taken, and what waited is due at once", async () => {
    for (let alert = 0; alert < 30; alert += 1) await world.raise(["first"]);
    receiver.status("chat", 500);
    for (let minute = 0; minute < 20; minute += 1) {
      await world.run();
      await world.pass(MINUTE_MS);
    }
    receiver.reset();
    await world.pass(5 * MINUTE_MS);
    await world.run();

    expect(await stateOf("chat")).toMatchObject({
      state: "closed",
      failures: 0,
      openedAt: null,
      lastError: null,
    });
    expect(receiver.received).toHaveLength(30);
  });

  test("closes within a minute after a pager is back, whatever one message's back-off", async () => {
    // A single page: its own pauses would be of up to a quarter of an hour by then.
    const id = await world.raise(["first"]);
    receiver.status("chat", 503);
    for (let step = 0; step < 2 * 60; step += 1) {
      await world.run();
      await world.pass(MINUTE_MS / 2);
    }
    const tries = receiver.received.length;
    expect(tries).toBeGreaterThan(50);
    expect(tries).toBeLessThanOrEqual(66);
    receiver.reset();
    for (const half of [1, 2]) {
      await world.run();
      await world.pass((half * MINUTE_MS) / 2);
    }
    expect(receiver.received.map(({ message }) => message.alertId)).toEqual([id]);
  });

  test("lets a receiver that named its time have it, also when that is longer than any pause", async () => {
    for (let alert = 0; alert < 6; alert += 1) await world.raise(["first"]);
    receiver.status("chat", 429, { "retry-after": "1200" });
    await world.run();
    await world.run();
    const before = receiver.received.length;
    for (let minute = 0; minute < 19; minute += 1) {
      await world.pass(MINUTE_MS);
      await world.run();
    }
    expect(receiver.received).toHaveLength(before);
    receiver.status("chat", 204);
    await world.pass(2 * MINUTE_MS);
    await world.run();
    expect(receiver.received).toHaveLength(before + 6);
  });

  test("is not kept open by a digest that the receiver fails at", async () => {
    receiver.answer("chat", (response, { message }) =>
      response.writeHead(message.digest === undefined ? 204 : 500).end(),
    );
    await inTransaction(database, async ({ tx }) => {
      const { state, nowMs } = await lockChannelState(tx, "chat");
      await saveChannelState(tx, "chat", { ...state, spentUntilMs: nowMs + 59_000 });
    });
    for (let alert = 0; alert < 3; alert += 1) await world.raise(["first"]);
    await world.run();
    expect(receiver.received.map(({ message }) => message.digest?.length)).toEqual([3]);
    for (let half = 0; half < 12; half += 1) {
      await world.pass(MINUTE_MS / 2);
      await world.run();
    }

    expect(new Set(await world.outbox())).toEqual(new Set(["1 first chat delivered"]));
    const alone = receiver.received.filter(({ message }) => message.digest === undefined);
    expect(alone).toHaveLength(3);
    expect(new Set(alone.map(({ id }) => id)).size).toBe(3);
    expect(await stateOf("chat")).toMatchObject({ state: "closed", failures: 0 });
  });

  test("does not send a row before its Retry-After, and sends a row that was dated by a clock ahead", async () => {
    await world.raise(["first"]);
    receiver.status("chat", 429, { "retry-after": "7200" });
    await world.run();
    receiver.reset();
    await world.run();
    expect(receiver.received).toEqual([]);
    await database.db.execute(
      sql`update notifications set next_attempt_at = next_attempt_at + interval '1 day'`,
    );
    await world.run();
    expect(receiver.heard()).toEqual(["chat first"]);
  });

  test("is probed again after the lease of a process that died during its probe", async () => {
    await world.raise(["first"]);
    await database.db.insert(channelStates).values({ channel: "chat", state: "open", openedAt: new Date() });
    const stopping = new AbortController();
    receiver.answer("chat", () => stopping.abort(new Error("enough")));
    await expect(world.run(["chat"], {}, stopping.signal)).rejects.toThrow("enough");
    receiver.status("chat", 204);
    await world.run();
    expect(receiver.received).toHaveLength(1);
    await world.pass(MINUTE_MS);
    await world.run();

    expect(await world.outbox()).toEqual(["1 first chat delivered"]);
  });

  test("that stays open gives up after three days, also what was never tried", async () => {
    for (let alert = 0; alert < 12; alert += 1) await world.raise(["first"]);
    receiver.status("chat", 500);
    await world.run();
    await world.run();
    await world.pass(73 * HOUR_MS);
    await world.run();

    expect(new Set(await world.outbox())).toEqual(new Set(["1 first chat undeliverable"]));
  });
});

test("F60: a channel that is down for six hours gets one firing and one resolve, in order", async () => {
  receiver.status("chat", 503);
  const attacks = [await world.raise(["first"]), await world.raise(["first"]), await world.raise(["first"])];
  for (let minute = 0; minute < 360; minute += 5) {
    await world.run();
    await world.pass(5 * MINUTE_MS);
    if (minute === 60) for (const id of attacks) await world.add(id, 2, "worse");
    if (minute === 200) for (const id of attacks) await world.add(id, 3, "repeat");
    if (minute === 300) for (const id of attacks) await world.add(id, 4, "resolved");
  }
  receiver.reset();
  await world.pass(5 * MINUTE_MS);
  await world.run();

  const heard = Map.groupBy(receiver.received, ({ message }) => message.alertId);
  for (const id of attacks) {
    expect(heard.get(id)?.map(({ message }) => message.reason)).toEqual(["first", "resolved"]);
  }
  expect(receiver.received).toHaveLength(6);
});

describe("a receiver that is gone (410)", () => {
  const both = ["chat", "pager"];

  /** One process: its notifiers stay the same from run to run. */
  function start() {
    const notifiers = world.notifiers(both);
    const job = createDeliverAlertsJob({ database, notifiers, log: pino({ level: "silent" }) });
    return () => job.run({} as never, new AbortController().signal);
  }

  test("F62: a 410 disables the channel until a restart and notifies the other channels", async () => {
    const run = start();
    await world.raise(["first"], both);
    receiver.status("chat", 410);
    await run();
    await world.raise(["first"], both);
    await world.pass(HOUR_MS);
    await run();
    await run();

    expect(receiver.heard().filter((heard) => heard === "chat first")).toHaveLength(1);
    expect(await stateOf("chat")).toMatchObject({ state: "disabled" });
    const self = receiver.received.filter(({ message }) => message.kind === "self");
    expect(self.map(({ channel, message }) => [channel, message.headline])).toEqual([
      [
        "pager",
        expect.stringMatching(/^Channel chat does not deliver .*ENDPOINT_GONE: .*disabled until a restart/),
      ],
    ]);

    receiver.status("chat", 204);
    await start()();
    expect(receiver.heard().filter((heard) => heard === "chat first")).toHaveLength(2);
    expect(await stateOf("chat")).toMatchObject({ state: "closed" });
  });
});

test("a disabled channel stays reported, also when all that was given up is to be tried again", async () => {
  const both = ["chat", "pager"];
  const notifiers = world.notifiers(both);
  const job = createDeliverAlertsJob({ database, notifiers, log: pino({ level: "silent" }) });
  const run = () => job.run({} as never, new AbortController().signal);
  await world.raise(["first"], both);
  receiver.status("chat", 410);
  await run();
  await replayDeliveries(database.db, { channel: "chat" });
  await run();
  expect(await world.outbox()).toContain("1 first chat pending");
  expect((await world.alerts()).filter(({ kind }) => kind === "self")).toMatchObject([{ state: "firing" }]);
});

describe("the fallback channel", () => {
  const both = ["chat", "pager"];
  const fallback = { channel: "pager", afterMs: 10 * MINUTE_MS };
  const run = () => world.run(both, { fallback });
  const paged = () =>
    receiver.received
      .filter(({ channel, message }) => channel === "pager" && message.kind !== "self")
      .map(({ message }) => `${message.alertId} ${message.reason}`);

  test("gets each notification that another channel has not accepted in time once, and its resolve", async () => {
    receiver.status("chat", 503);
    const id = await world.raise(["first"]);
    await run();
    await world.pass(9 * MINUTE_MS);
    await run();
    expect(paged()).toEqual([]);
    await world.pass(2 * MINUTE_MS);
    await Promise.all([run(), run()]);
    await run();
    expect(paged()).toEqual([`${id} first`]);

    receiver.status("chat", 204);
    await world.pass(HOUR_MS);
    await run();
    await world.add(id, 2, "resolved");
    await run();
    await run();
    expect(paged()).toEqual([`${id} first`, `${id} resolved`]);
    expect(
      receiver
        .heard()
        .filter((heard) => heard.startsWith("chat"))
        .at(-1),
    ).toBe("chat resolved");
  });

  test("gets a notification at once if another channel refused it for good", async () => {
    receiver.status("chat", 400);
    const id = await world.raise(["first"]);
    await run();
    await run();

    expect(paged()).toEqual([`${id} first`]);
  });

  test("gets no notification of its own twice, and none that is out of date", async () => {
    receiver.status("chat", 503);
    const own = await world.raise(["first"], both);
    const other = await world.raise(["first", "worse"]);
    await run();
    await world.pass(11 * MINUTE_MS);
    await run();
    await run();

    expect(paged().sort()).toEqual([`${own} first`, `${other} first`].sort());
  });

  test("that is not configured changes nothing", async () => {
    await world.raise(["first"], ["other"]);
    await world.pass(11 * MINUTE_MS);
    await world.run(["chat"], { fallback });

    expect(await world.outbox()).toEqual(["1 first other pending"]);
    expect(
      await database.db.execute(sql`select from notifications where stands_in_for is not null`),
    ).toMatchObject({
      rowCount: 0,
    });
  });
});

test("a channel that is back hastens what waits after its own failures, not what its receiver put off, nor another's", async () => {
  const errors = ["ENDPOINT_UNAVAILABLE: 500", "asked to wait: ENDPOINT_UNAVAILABLE: 429", null];
  for (const lastError of errors) {
    const alertId = await world.raise(["first"], ["chat", "pager"]);
    await database.db
      .update(notifications)
      .set({ lastError, nextAttemptAt: sql`now() + interval '1 hour'` })
      .where(sql`alert_id = ${alertId}`);
  }
  await world.raise(["first"]);
  await database.db
    .update(notifications)
    .set({ state: "undeliverable", lastError: errors[0], nextAttemptAt: sql`now() + interval '1 hour'` })
    .where(sql`last_error is null and next_attempt_at <= now()`);
  await hastenWaiting(database.db, "chat");
  const { rows } = await database.pool.query(
    "select channel, state, last_error from notifications where next_attempt_at <= now()",
  );
  expect(rows).toEqual([{ channel: "chat", state: "pending", last_error: errors[0] }]);
});

test("only the channels that are named get another chance, and only those that were disabled", async () => {
  const state = { state: "disabled", failures: 3, openings: 2, lastError: "gone" } as const;
  for (const channel of ["chat", "pager"])
    await database.db.insert(channelStates).values({ ...state, channel });
  await database.db.insert(channelStates).values({ ...state, channel: "desk", state: "open" });
  expect(await enableChannels(database.db, ["chat", "desk", "nobody"])).toBe(1);
  expect(await enableChannels(database.db, [])).toBe(0);
  expect(await stateOf("chat")).toMatchObject({ state: "closed", failures: 0, openings: 0, lastError: null });
  expect(await stateOf("pager")).toMatchObject(state);
  expect(await stateOf("desk")).toMatchObject({ state: "open", failures: 3 });
});
