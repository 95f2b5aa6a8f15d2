import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SendOptions } from "#delivery/receivers/channel-definition.ts";
import { webhook } from "#delivery/receivers/channels/webhook/webhook.ts";
import { MAX_BODY_BYTES, toWebhookBodies } from "#delivery/receivers/channels/webhook/webhook-body.ts";
import { createSecret } from "#lib/secret.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { type ReplyQueue, startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { hostileMessage, messageOf, messageSaying, sourcesMessage } from "../../support/messages.ts";
import { NOW, SIGNING_SECRET, sendOptions } from "../../support/receiver.ts";

const OLD_SECRET = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
let receiver: ReplyQueue;

beforeEach(async () => {
  receiver = await startReplyQueue();
});

afterEach(() => receiver.close());

async function send(
  secrets: readonly string[],
  {
    message = messageOf(),
    options = {},
    nowMs = Date.now(),
  }: {
    message?: AlertMessage;
    options?: Partial<SendOptions>;
    nowMs?: number;
  } = {},
) {
  receiver.reply(200);
  const notifier = webhook.open({
    name: "hook",
    url: createSecret(receiver.url),
    secrets: secrets.map(createSecret),
    clock: () => nowMs,
    network: { allowPrivateNetworks: true },
  });
  await notifier.send(message, sendOptions(options));
  const request = receiver.requests.at(-1);
  if (request === undefined) throw new Error("nothing arrived");
  return { body: request.body, headers: request.headers as Record<string, string> };
}

test("a receiver's own library verifies the signature and reads the message", async () => {
  const { body, headers } = await send([SIGNING_SECRET], { message: hostileMessage() });

  const read = new Webhook(SIGNING_SECRET).verify(body, headers) as { type: string; data: unknown };

  expect(headers["content-type"]).toBe("application/json");
  expect(read.type).toBe("alert.firing");
  const { headline, top, alertId } = alertMessage.parse(read.data);
  expect({ headline, top, alertId }).toEqual({
    headline: hostileMessage().headline,
    top: hostileMessage().top,
    alertId: 7,
  });
});

test("during a rotation the old and the new secret both verify, another does not", async () => {
  const { body, headers } = await send([SIGNING_SECRET, OLD_SECRET]);

  expect(headers["webhook-signature"]).toMatch(/^v1,\S{44} v1,\S{44}$/);
  expect(() => new Webhook(SIGNING_SECRET).verify(body, headers)).not.toThrow();
  expect(() => new Webhook(OLD_SECRET).verify(body, headers)).not.toThrow();
  const other = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
  expect(() => new Webhook(other).verify(body, headers)).toThrow("No matching signature");
  expect(() => new Webhook(SIGNING_SECRET).verify(body.replace("847", "848"), headers)).toThrow(
    "No matching signature",
  );
});

test("the id stays over attempts, the timestamp is each attempt's own, in seconds (F61)", async () => {
  const first = await send([SIGNING_SECRET], { nowMs: NOW + 999 });
  const second = await send([SIGNING_SECRET], { nowMs: NOW + 61_000, options: { attempt: 2 } });

  expect(first.headers["webhook-id"]).toBe("episode-7-1-hook");
  expect(second.headers["webhook-id"]).toBe("episode-7-1-hook");
  expect(first.headers["webhook-timestamp"]).toBe(String(NOW / 1_000));
  expect(second.headers["webhook-timestamp"]).toBe(String(NOW / 1_000 + 61));
});

test.each(["a.b", "a b", "ä", "x\r\nx-evil: 1", "k".repeat(500)])(
  "the key %j becomes an id that may be a header and holds no separator",
  async (deliveryKey) => {
    const { body, headers } = await send([SIGNING_SECRET], { options: { deliveryKey } });
    const again = await send([SIGNING_SECRET], { options: { deliveryKey } });

    expect(headers["webhook-id"]).toMatch(/^msg_[\w-]{43}$/);
    expect(again.headers["webhook-id"]).toBe(headers["webhook-id"]);
    expect(() => new Webhook(SIGNING_SECRET).verify(body, headers)).not.toThrow();
  },
);

test.each([
  ["no prefix", Buffer.alloc(32, 1).toString("base64")],
  ["23 bytes", `whsec_${Buffer.alloc(23, 1).toString("base64")}`],
  ["65 bytes", `whsec_${Buffer.alloc(65, 1).toString("base64")}`],
  ["no base64", "whsec_not base64 at all, but long enough"],
])("a secret with %s is refused without being quoted", (_what, secret) => {
  const open = () =>
    webhook.open({
      name: "hook",
      url: createSecret("https://example.com/"),
      secrets: [createSecret(SIGNING_SECRET), createSecret(secret)],
      clock: () => NOW,
    });
  expect(open).toThrow(/^channel hook: secret 2 must /);
  expect(open).not.toThrow(secret);
});

test("a channel without a secret is refused", () => {
  const open = () =>
    webhook.open({
      name: "hook",
      url: createSecret("https://example.com/"),
      secrets: [],
      clock: () => NOW,
    });
  expect(open).toThrow("channel hook: needs a secret with which to sign messages");
});

test("the body looks as it looked (F71)", async () => {
  const pretty = (message: AlertMessage) =>
    `${JSON.stringify(JSON.parse(toWebhookBodies(message, NOW).first), null, 2)}\n`;
  await expect(pretty(messageOf())).toMatchFileSnapshot("golden/first.golden.json");
  await expect(pretty(sourcesMessage())).toMatchFileSnapshot("golden/sources.golden.json");
  await expect(`${toWebhookBodies(hostileMessage(), NOW).first}\n`).toMatchFileSnapshot(
    "golden/hostile.golden.json",
  );
});

test.each(Object.entries(HOSTILE))(
  "%s arrives as it was, in bytes that are harmless (F71)",
  (_name, text) => {
    const body = toWebhookBodies(messageSaying(text), NOW).first;
    expect(body).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}<>&]/u);
    expect(JSON.parse(body).data.headline).toBe(text);
  },
);

test("a body just below the limit is left whole, one byte more and it is cut", () => {
  const room =
    MAX_BODY_BYTES - 1 - Buffer.byteLength(toWebhookBodies(messageOf({ headline: "" }), NOW).first);
  const fits = toWebhookBodies(messageOf({ headline: "x".repeat(room) }), NOW).first;
  const over = toWebhookBodies(messageOf({ headline: "x".repeat(room + 1) }), NOW).first;

  expect(Buffer.byteLength(fits)).toBe(MAX_BODY_BYTES - 1);
  expect(JSON.parse(fits)).toMatchObject({ trimmed: false, data: { headline: "x".repeat(room) } });
  expect(JSON.parse(over).trimmed).toBe(true);
  expect(Array.from(JSON.parse(over).data.headline)).toHaveLength(1_000);
});

test.each([
  ["plain letters", "x"],
  ["emoji", "💥"],
  ["tags, twelve bytes each", "\u{e0041}"],
  ["halves of surrogate pairs", "\ud800"],
  ["line separators", "\u2028"],
  ["quotes", '"'],
])("any amount of %s leaves less than 20 KB of valid message with whole keys", (_name, character) => {
  const long = character.repeat(30_000);
  const key = character.repeat(255).slice(0, 255);
  const monster = messageSaying(long, {
    fingerprint: key,
    dedupeKey: key,
    links: Array.from({ length: 50 }, () => ({
      title: long,
      url: `https://x.example/${"\u2028".repeat(270)}`,
    })),
    sparkline: Array.from({ length: 20_000 }, () => Number.MAX_VALUE),
  });
  const body = toWebhookBodies(monster, NOW).first;

  expect(Buffer.byteLength(body)).toBeLessThan(MAX_BODY_BYTES);
  const read = JSON.parse(body);
  expect(read.trimmed).toBe(true);
  expect(alertMessage.parse(read.data)).toMatchObject({ fingerprint: key, dedupeKey: key, count: 847 });
});
