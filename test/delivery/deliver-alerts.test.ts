import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { sql } from "drizzle-orm";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { readChannelStatuses } from "#db/delivery/channel-states.ts";
import { markDelivered, markRetry, markUndeliverable } from "#db/delivery/delivery-outcomes.ts";
import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { createLog } from "#lib/log.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type MigratedDatabase } from "../db/migrated-database.ts";
import { type DeliverWorld, openDeliverWorld, type Receiver } from "./deliver-world.ts";
import { capabilitiesOf } from "./support/capabilities.ts";

const WAIT = { timeout: 20_000 };
const LEASE_MS = 60_000;
const PROCESS = fileURLToPath(new URL("deliver-process.ts", import.meta.url));
let database: MigratedDatabase;
let receiver: Receiver;
let world: DeliverWorld;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, receiver, world } = opened);
  return opened.close;
});

beforeEach(() => world.clear());

test("a message that was sent without its template is delivered, with the reason", async () => {
  await world.raise(["first"]);
  const notifiers = [...world.notifiers(["chat"])].map(([name, one]) => {
    const send: typeof one.send = async (...sent) => ({
      ...(await one.send(...sent)),
      note: "TEMPLATE_FAILED: x",
    });
    return [name, { ...one, send }] as const;
  });
  await world.run([], { notifiers: new Map(notifiers) });
  expect(await world.rows()).toMatchObject([{ state: "delivered", lastError: "TEMPLATE_FAILED: x" }]);
  expect((await readChannelStatuses(database.db))[0]).toMatchObject({ state: "closed", dead: 0 });
});

describe("once", () => {
  test("five deliverers at the same time send every notification once", async () => {
    for (let alert = 0; alert < 20; alert += 1) await world.raise(["first"], ["chat", "pager"]);
    await Promise.all(Array.from({ length: 5 }, () => world.run(["chat", "pager"])));

    expect(receiver.received).toHaveLength(40);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(40);
    expect(new Set(await world.outbox())).toEqual(
      new Set(["1 first chat delivered", "1 first pager delivered"]),
    );
  });

  test("F2 F61: killed after the post and before its record, it is sent again under the same id", async () => {
    await world.raise(["first"]);
    const child = fork(PROCESS, [database.url, receiver.url, "chat"]);
    const ended = once(child, "exit");
    receiver.answer("chat", () => child.kill("SIGKILL"));
    await ended;
    expect(await world.outbox()).toEqual(["1 first chat sending"]);
    receiver.status("chat", 204);

    await world.run();
    expect(receiver.received).toHaveLength(1);
    await world.pass(LEASE_MS);
    await world.run();

    expect(receiver.received).toHaveLength(2);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
    expect(await world.rows()).toMatchObject([{ state: "delivered", attempts: 2, lastError: null }]);
  });

  test("a database connection that is lost before the record costs a second post of the same id", async () => {
    await world.raise(["first"]);
    const ignored = () => {};
    const doomed = createDatabase({ url: database.url, max: 1, applicationName: "doomed", onError: ignored });
    const holder = await database.pool.connect();
    receiver.answer("chat", async (response) => {
      await holder.query("begin; lock table notifications in access exclusive mode");
      response.writeHead(204).end();
    });
    const running = world.run(["chat"], { database: doomed });
    running.catch(ignored);
    const waiting =
      "datname = current_database() and application_name = 'doomed' and wait_event_type = 'Lock'";
    const find = `select pg_terminate_backend(pid) from pg_stat_activity where ${waiting}`;
    await expect.poll(async () => (await database.pool.query(find)).rowCount, WAIT).toBe(1);
    await holder.query("rollback");
    holder.release();
    await expect(running).rejects.toThrow("notifications");
    await doomed.close();

    receiver.status("chat", 204);
    await world.pass(LEASE_MS);
    await world.run();
    expect(receiver.received.map(({ id }) => id)).toEqual(Array(2).fill(receiver.received[0]?.id));
    expect(await world.outbox()).toEqual(["1 first chat delivered"]);
  });

  test("F3: stopped while it sends, the message is due for the next one at once, under the same id", async () => {
    await world.raise(["first"]);
    const stopping = new AbortController();
    receiver.answer("chat", () => stopping.abort(new Error("the service is stopping")));
    await expect(world.run(["chat"], {}, stopping.signal)).rejects.toThrow("stopping");
    receiver.status("chat", 204);
    await world.run();

    expect(receiver.received).toHaveLength(2);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
    expect(await world.outbox()).toEqual(["1 first chat delivered"]);
  });

  test("a sender that comes back after its lease leaves the record to its successor", async () => {
    await world.raise(["first"]);
    const replies: ((status: number) => void)[] = [];
    receiver.answer("chat", (response) => replies.push((status) => void response.writeHead(status).end()));
    const first = world.run();
    await expect.poll(() => replies.length, WAIT).toBe(1);
    await world.pass(LEASE_MS);
    const second = world.run();
    await expect.poll(() => replies.length, WAIT).toBe(2);
    replies[0]?.(204);
    await first;
    expect(await world.outbox()).toEqual(["1 first chat sending"]);
    replies[1]?.(500);
    await second;

    expect(await world.rows()).toMatchObject([{ state: "pending", attempts: 2 }]);
  });

  test("a notifier that ignores its signal holds up no stop", async () => {
    await world.raise(["first"]);
    const stopping = new AbortController();
    const unanswered = {
      name: "chat",
      kind: "webhook",
      capabilities: capabilitiesOf("webhook"),
      send: () => {
        stopping.abort(new Error("the service is stopping"));
        return new Promise<never>(() => {});
      },
    };
    const notifiers = new Map([["chat", unanswered]]);
    await expect(world.run(["chat"], { notifiers }, stopping.signal)).rejects.toThrow("stopping");
  });
});

describe("a receiver that asks for a pause", () => {
  test.each([
    ["in seconds", () => ({ "retry-after": "120" })],
    [
      "by a date",
      () => ({
        date: new Date(0).toUTCString(),
        "retry-after": new Date(120_000).toUTCString(),
      }),
    ],
  ])(
    "%s is left alone for as long, also by what is written meanwhile; others are not",
    async (_how, headers) => {
      await world.raise(["first"], ["chat", "pager"]);
      receiver.status("chat", 429, headers());
      await world.run(["chat", "pager"]);
      await world.raise(["first"], ["chat", "pager"]);
      await world.run(["chat", "pager"]);
      await world.pass(110_000);
      await world.run(["chat", "pager"]);
      expect(receiver.heard().sort()).toEqual(["chat first", "pager first", "pager first"]);

      receiver.status("chat", 204);
      await world.pass(15_000);
      await world.run(["chat", "pager"]);
      expect(receiver.heard().filter((heard) => heard === "chat first")).toHaveLength(3);
      expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(4);
    },
  );

  test("no header silences a channel for longer than an hour", async () => {
    await world.raise(["first"]);
    receiver.status("chat", 503, { "retry-after": "86400" });
    await world.run();
    receiver.status("chat", 204);
    await world.pass(HOUR_MS + 1_000);
    await world.run();

    expect(await world.outbox()).toEqual(["1 first chat delivered"]);
  });
});

describe("a receiver that is broken", () => {
  test("F60: is tried for three days, and then given up with the last reason", async () => {
    await world.raise(["first"]);
    receiver.status("chat", 500);
    for (let hour = 0; hour < 80; hour += 1) {
      await world.run();
      await world.pass(HOUR_MS);
    }

    expect(receiver.received).toHaveLength(73);
    expect(await world.rows()).toMatchObject([
      {
        state: "undeliverable",
        lastError: expect.stringMatching(
          /^ENDPOINT_UNAVAILABLE: too old, at last: 127\.0\.0\.1:\d+ answered 500$/,
        ),
      },
    ]);
  });

  test("is tried four times a run, however many messages wait", async () => {
    for (let alert = 0; alert < 30; alert += 1) await world.raise(["first"]);
    receiver.status("chat", 500);
    await world.run();

    expect(receiver.received).toHaveLength(4);
  });

  test("F14: delays no other channel, not even by never answering", async () => {
    await world.raise(["first"], ["chat", "pager"]);
    await world.raise(["first", "advice"], ["pager"]);
    const stopping = new AbortController();
    receiver.answer("chat", () => {});
    const running = world.run(["chat", "pager"], {}, stopping.signal);
    running.catch(() => {});

    await expect
      .poll(() => receiver.heard().filter((heard) => heard.startsWith("pager")), WAIT)
      .toHaveLength(3);
    await expect
      .poll(async () => (await world.outbox()).filter((row) => row.includes("pager")), WAIT)
      .toEqual(["1 first pager delivered", "1 first pager delivered", "2 advice pager delivered"]);
    stopping.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
  });

  test("says in the log which channel fails and how", async () => {
    await world.raise(["first"]);
    receiver.status("chat", 404);
    let written = "";
    const log = createLog({ level: "info", stream: { write: (line) => (written += line) } });
    await world.run(["chat"], { log });

    const lines = written
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toEqual([
      expect.objectContaining({
        level: "warn",
        channel: "chat",
        undeliverable: 1,
        codes: ["ENDPOINT_REJECTED"],
      }),
      expect.objectContaining({
        level: "error",
        channel: "chat",
        headline: expect.stringContaining("given up: 1") as unknown,
        msg: "channel failed",
      }),
    ]);
  });
});

describe("order", () => {
  test("advice waits for its first message, the resolve for both", async () => {
    const alertId = await world.raise(["first", "advice"]);
    receiver.status("chat", 500);
    await world.run();
    expect(receiver.heard()).toEqual(["chat first"]);
    receiver.status("chat", 204);
    await world.run();
    expect(receiver.heard()).toEqual(["chat first"]);
    await world.pass(10_000);
    await Promise.all([world.run(), world.run(), world.run()]);
    await world.add(alertId, 3, "resolved");
    await world.run();

    expect(receiver.heard()).toEqual(["chat first", "chat first", "chat advice", "chat resolved"]);
  });

  test("five deliverers keep the order of every alert", async () => {
    for (let alert = 0; alert < 10; alert += 1) await world.raise(["first", "advice"]);
    for (const { id } of await world.alerts()) await world.add(id, 3, "resolved");
    await Promise.all(Array.from({ length: 5 }, () => world.run()));
    await world.run();

    for (const { id } of await world.alerts()) {
      const transitions = receiver.received
        .filter(({ message }) => message.alertId === id)
        .map(({ message }) => message.transition);
      expect(transitions).toEqual([...transitions].sort((a, b) => a - b));
    }
    expect(
      (await world.outbox()).filter((row) => !/delivered|2 advice chat undeliverable/.test(row)),
    ).toEqual([]);
  });

  test("no message is sent before an earlier one that another replica has claimed", async () => {
    await world.raise(["first", "worse"]);
    const holder = await database.pool.connect();
    await holder.query("begin; select from notifications where reason = 'first' for update");
    await world.run();
    expect(receiver.received).toEqual([]);
    await holder.query("rollback");
    holder.release();
    await world.run();

    expect(receiver.heard()).toEqual(["chat first"]);
  });

  test("F60: an outage longer than the episode leaves one firing, the newest, and one resolve", async () => {
    const alertId = await world.raise(["first"]);
    receiver.status("chat", 503);
    await world.run();
    await world.add(alertId, 2, "advice");
    await world.add(alertId, 3, "worse");
    await world.add(alertId, 4, "resolved");
    for (let hour = 0; hour < 6; hour += 1) {
      await world.pass(HOUR_MS);
      await world.run();
    }
    receiver.reset();
    await world.pass(HOUR_MS);
    await world.run();

    expect(receiver.heard().slice(-2)).toEqual(["chat first", "chat resolved"]);
    expect((await world.outbox()).slice(0, 4)).toEqual([
      "1 first chat undeliverable",
      "2 advice chat undeliverable",
      "3 worse chat delivered",
      "4 resolved chat delivered",
    ]);
  });

  test("a resolve is sent to a channel only if its last delivered message is firing", async () => {
    const alertId = await world.raise(["first"]);
    await world.run();
    for (const [index, reason] of (["repeat", "advice", "resolved"] as const).entries()) {
      await world.add(alertId, index + 2, reason);
      await world.run();
    }
    receiver.status("chat", 400);
    await world.add(alertId, 5, "worse");
    await world.run();
    receiver.status("chat", 204);
    await world.add(alertId, 6, "resolved");
    await world.run();
    expect(receiver.heard()).toEqual(
      ["first", "repeat", "advice", "resolved", "worse"].map((one) => `chat ${one}`),
    );
    expect((await world.outbox()).slice(3)).toEqual([
      "4 resolved chat delivered",
      "5 worse chat undeliverable",
      "6 resolved chat undeliverable",
    ]);
    await world.add(alertId, 7, "worse");
    await world.run();
    await world.add(alertId, 8, "resolved");
    await world.run();
    expect(receiver.heard().slice(5)).toEqual(["chat worse", "chat resolved"]);
  });

  test("a channel that got no earlier message of an alert is told that it fires, not that it goes on", async () => {
    const alertId = await world.raise(["first", "worse"]);
    await world.run();
    await world.add(alertId, 3, "worse");
    await world.run();
    expect(receiver.heard()).toEqual(["chat first", "chat worse"]);
    expect((await world.outbox())[0]).toBe("1 first chat undeliverable");
  });

  test.each(["again", "turned"] as const)("a resolve is sent after %s, too", async (reason) => {
    const alertId = await world.raise(["first"]);
    await world.run();
    for (const [index, next] of (["resolved", reason, "resolved"] as const).entries()) {
      await world.add(alertId, index + 2, next);
      await world.run();
    }
    expect(receiver.heard()).toEqual(["first", "resolved", reason, "resolved"].map((one) => `chat ${one}`));
  });

  test("a resolve whose firing was refused is not sent", async () => {
    await world.raise(["first", "resolved"]);
    receiver.status("chat", 400);
    await world.run();
    receiver.status("chat", 204);
    await world.run();

    expect(receiver.heard()).toEqual(["chat first"]);
    expect(await world.outbox()).toEqual(["1 first chat undeliverable", "2 resolved chat undeliverable"]);
  });
});

describe("a channel that this process does not know", () => {
  test("F11: is left to a replica that does", async () => {
    await world.raise(["first"], ["chat", "new"]);
    await world.run(["chat"]);
    expect(await world.outbox()).toEqual(["1 first chat delivered", "1 first new pending"]);
    await world.pass(MINUTE_MS);
    await world.run(["chat", "new"]);

    expect(receiver.heard()).toEqual(["chat first", "new first"]);
  });

  test("counts as removed if no replica has claimed it for a quarter of an hour, without an alert", async () => {
    await world.raise(["first"], ["chat", "old"]);
    await world.run(["chat"]);
    await world.pass(16 * MINUTE_MS);
    await world.run(["chat"]);

    expect(await world.rows()).toMatchObject([
      { channel: "chat", state: "delivered" },
      {
        channel: "old",
        state: "undeliverable",
        lastError: "CHANNEL_UNKNOWN: this channel is not configured",
      },
    ]);
    expect(receiver.heard()).toEqual(["chat first"]);
    expect(await world.alerts()).toHaveLength(1);
  });

  test("an unreadable message is given up, and delays no later message", async () => {
    await world.raise(["first"]);
    await database.db.update(notifications).set({ content: { reason: "first" } });
    await world.raise(["first"]);
    await world.run();
    await world.pass(16 * MINUTE_MS);
    await world.run();

    expect((await world.outbox()).slice(0, 2)).toEqual([
      "1 first chat undeliverable",
      "1 first chat delivered",
    ]);
    expect((await world.rows())[0]?.lastError).toMatch(/^CONTENT_INVALID: not an alert message: alertId/);
  });
});

describe("a channel that fails", () => {
  const both = ["chat", "pager"] as const;
  const selfMessages = () => receiver.received.filter(({ message }) => message.kind === "self");

  test("F62: causes one alert on the other channels, with its name and cause, and a resolve when it delivers", async () => {
    await world.raise(["first"], both);
    receiver.status("chat", 410);
    await Promise.all([world.run(both), world.run(both), world.run(both)]);
    await world.run(both);

    expect(selfMessages().map(({ channel, message }) => [channel, message.state, message.headline])).toEqual([
      [
        "pager",
        "firing",
        expect.stringMatching(/^Channel chat does not deliver \(pending: 0, given up: 1\): ENDPOINT_GONE: /),
      ],
    ]);
    expect((await world.alerts()).filter(({ kind }) => kind === "self")).toMatchObject([{ state: "firing" }]);

    receiver.status("chat", 204);
    await world.pass(16 * MINUTE_MS);
    await world.raise(["first"], both);
    await world.run(both);
    await world.run(both);
    expect(selfMessages().map(({ channel, message }) => [channel, message.reason])).toEqual([
      ["pager", "first"],
      ["pager", "resolved"],
    ]);
    expect(new Set(selfMessages().map(({ message }) => message.dedupeKey)).size).toBe(1);
    expect((await world.alerts()).filter(({ state }) => state === "resolved")).toHaveLength(1);
  });

  test("raises an alert after a quarter of an hour if it may recover", async () => {
    await world.raise(["first"], both);
    receiver.status("chat", 503);
    await world.run(both);
    await world.pass(14 * MINUTE_MS);
    await world.run(both);
    expect(selfMessages()).toEqual([]);
    await world.pass(16 * MINUTE_MS);
    await world.run(both);

    expect(selfMessages().map(({ channel, message }) => `${channel} ${message.reason}`)).toEqual([
      "pager first",
    ]);
  });

  test("raises an alert also if one refused message is among accepted ones", async () => {
    await world.raise(["first"], both);
    receiver.status("chat", 400);
    await world.run(["chat"]);
    receiver.status("chat", 204);
    await database.db.delete(alerts).where(sql`kind = 'self'`);
    await world.raise(["first"], ["chat"]);
    await world.run(both);

    expect(selfMessages().map(({ channel }) => channel)).toEqual(["pager"]);
  });

  test("without another channel, raises an alert without a notification", async () => {
    await world.raise(["first"]);
    receiver.status("chat", 404);
    await world.run();

    expect(selfMessages()).toEqual([]);
    expect((await world.alerts()).filter(({ kind }) => kind === "self")).toMatchObject([
      { state: "firing", details: { message: { headline: expect.stringContaining("Channel chat") } } },
    ]);
  });

  test("superseded messages are no failure", async () => {
    const alertId = await world.raise(["first"]);
    await world.add(alertId, 2, "worse");
    await world.run();

    expect(await world.outbox()).toEqual(["1 first chat undeliverable", "2 worse chat delivered"]);
    expect(await world.alerts()).toHaveLength(1);
  });
});

test("a delivered row stays delivered whatever a late sender reports, and a dropped row that arrived is delivered", async () => {
  await world.raise(["first"]);
  const { db } = database;
  await db.update(notifications).set({ state: "sending", attempts: 1 });
  const claimed = (await world.rows()).map(({ id, attempts }) => ({ id, attempts }));
  const states = async () => (await world.rows()).map(({ state }) => state);
  expect(await markDelivered(db, claimed, "42")).toBe(1);
  expect(await markRetry(db, claimed, { delayMs: 0, error: "late" })).toBe(0);
  expect(await markUndeliverable(db, claimed, "late")).toBe(0);
  expect(await states()).toEqual(["delivered"]);

  await db.update(notifications).set({ state: "undeliverable" });
  expect(await markRetry(db, claimed, { delayMs: 0, error: "late" })).toBe(0);
  const others = claimed.map(({ id, attempts }) => ({ id, attempts: attempts + 1 }));
  expect(await markDelivered(db, others, "42")).toBe(0);
  expect(await states()).toEqual(["undeliverable"]);
  expect(await markDelivered(db, claimed, "42")).toBe(1);
  expect(await states()).toEqual(["delivered"]);
});
