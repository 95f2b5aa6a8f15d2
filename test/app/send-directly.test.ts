import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { buildDatabaseMessage } from "#alerts/rules/message/self-message.ts";
import { type Routing, routeToAll } from "#alerts/rules/routing/routing.ts";
import { email } from "#delivery/receivers/channels/email/email.ts";
import { createDirectSender } from "#jobs/delivery/send-directly.ts";
import { systemClock } from "#lib/clock.ts";
import { type Receiver, startReceiver, webhooksOf } from "../delivery/deliver-world.ts";
import { startMailServer } from "../delivery/support/mail-server.ts";

const WAIT = { timeout: 10_000, interval: 10 };
const SINCE = Date.UTC(2026, 10, 20, 12);
const trouble = { sinceMs: SINCE, headline: "The embedded Postgres is down" };
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());
beforeEach(() => receiver.reset());

function open(
  channels: readonly string[],
  routing: Routing = routeToAll(channels),
  notifiers = webhooksOf(receiver.url, channels),
) {
  const log = pino({ level: "silent" });
  const sender = createDirectSender({
    notifiers,
    routing: () => routing,
    clock: systemClock,
    log,
    pauseMs: 20,
  });
  onTestFinished(() => sender.stop());
  return sender;
}

test("the alert and its end reach every channel once, under one key for each transition", async () => {
  const sender = open(["chat", "pager"]);
  sender.open(buildDatabaseMessage(trouble, null));
  await expect.poll(() => receiver.heard().sort(), WAIT).toEqual(["chat first", "pager first"]);

  sender.close(buildDatabaseMessage(trouble, SINCE + 60_000));

  const all = ["chat first", "chat resolved", "pager first", "pager resolved"];
  await expect.poll(() => receiver.heard().sort(), WAIT).toEqual(all);
  const [first] = receiver.received;
  expect(first?.message).toMatchObject({
    kind: "self",
    severity: "critical",
    state: "firing",
    headline: trouble.headline,
  });
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(4);
  expect(new Set(receiver.received.map(({ message }) => message.dedupeKey)).size).toBe(1);
});

test("a channel that fails is tried again under the same key until it takes the alert", async () => {
  let refused = 0;
  receiver.answer("chat", (response) => response.writeHead(++refused < 4 ? 503 : 204).end());
  open(["chat"]).open(buildDatabaseMessage(trouble, null));

  await expect.poll(() => refused, WAIT).toBe(4);
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
});

test("a recipient whose mailbox is full neither repeats the mail to the others nor keeps the end from them", async () => {
  let deferrals = 0;
  const server = await startMailServer({
    onRcptTo({ address }, _session, callback) {
      if (!address.startsWith("full")) return callback();
      deferrals += 1;
      callback(Object.assign(new Error("full"), { responseCode: 452 }));
    },
  });
  onTestFinished(() => server.stop());
  const mail = email.open({
    name: "mail",
    host: "127.0.0.1",
    port: server.port,
    tls: "none",
    from: "alerts@longwatch.example",
    to: ["on-call@example.com", "full@example.com"],
    clock: systemClock,
    network: { allowPrivateNetworks: true },
  });
  const sender = open(["mail"], routeToAll(["mail"]), new Map([["mail", mail]]));
  sender.open(buildDatabaseMessage(trouble, null));
  await expect.poll(() => deferrals, WAIT).toBeGreaterThan(3);
  expect(server.mails).toHaveLength(1);

  sender.close(buildDatabaseMessage(trouble, SINCE + 60_000));
  await expect.poll(() => server.mails.length, WAIT).toBe(2);
});

test("the end goes only to channels that took the alert, and the others are not tried again", async () => {
  receiver.status("pager", 503);
  const sender = open(["chat", "pager"]);
  sender.open(buildDatabaseMessage(trouble, null));
  await expect.poll(() => receiver.heard(), WAIT).toContain("chat first");
  await expect.poll(() => receiver.heard().filter((one) => one === "pager first").length).toBeGreaterThan(1);

  sender.close(buildDatabaseMessage(trouble, SINCE + 60_000));

  await expect.poll(() => receiver.heard(), WAIT).toContain("chat resolved");
  const tries = receiver.heard().filter((one) => one.startsWith("pager")).length;
  // An attempt that was under way may still end.
  await expect
    .poll(() => receiver.heard().filter((one) => one.startsWith("pager")).length)
    .toBeLessThan(tries + 2);
  expect(receiver.heard()).not.toContain("pager resolved");
});

test("the routes say which channels get it; where they name none, all do", async () => {
  const routing = routeToAll(["pager"]);
  open(["chat", "pager"], routing).open(buildDatabaseMessage(trouble, null));
  await expect.poll(() => receiver.heard(), WAIT).toEqual(["pager first"]);

  receiver.reset();
  open(["chat", "pager"], routeToAll([])).open(buildDatabaseMessage(trouble, null));
  await expect.poll(() => receiver.heard().sort(), WAIT).toEqual(["chat first", "pager first"]);
});
