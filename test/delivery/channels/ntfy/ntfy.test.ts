import { expect, onTestFinished, test } from "vitest";
import { NTFY_LIMITS, ntfy, toNtfyNotification } from "#delivery/receivers/channels/ntfy/ntfy.ts";
import { createSecret } from "#lib/secret.ts";
import { startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { messageOf, messageSaying } from "../../support/messages.ts";
import { ANSWERS, CANARY, failureOf, POSTING, SEQUENCE, sendOptions } from "../../support/receiver.ts";
import { ntfyNotification } from "./schema.ts";

describeFormat("ntfy", toNtfyNotification, ntfyNotification);

test.each(Object.entries(HOSTILE))("%s names no site and mentions nobody (F71)", (_name, text) => {
  const { title, message } = toNtfyNotification(messageSaying(text));
  expect(`${title}\n${message}`).not.toMatch(/[@](?=[\p{L}\p{N}_])|\.(?=\p{L})/u);
});

test("three links are buttons, and further ones are in the text", () => {
  const links = [1, 2, 3, 4, 5].map((id) => ({ title: `Page ${id}`, url: `https://wiki.example/${id}` }));
  const { actions, click, message } = toNtfyNotification(messageOf({ links }));
  expect(actions.map(({ url }) => url)).toEqual([1, 2, 3].map((id) => `https://wiki.example/${id}`));
  expect(click).toBe("https://wiki.example/1");
  expect(message).toMatch(/\nPage 4: https:\/\/wiki\.example\/4\nPage 5: https:\/\/wiki\.example\/5$/);
});

test("a message fills its limit and never exceeds it", () => {
  const sizes = Array.from({ length: 40 }, (_, index) => {
    const text = "é\n".repeat(index * 50);
    const body = toNtfyNotification(messageOf({ advice: { state: "present", text, reason: null } }));
    return Buffer.byteLength(body.message);
  });
  expect(Math.max(...sizes)).toBeLessThanOrEqual(NTFY_LIMITS.message);
  const long = toNtfyNotification(messageSaying("é".repeat(20_000)));
  expect(Buffer.byteLength(long.message)).toBeGreaterThan(2_500);
});

test.each([
  ["first", {}, 5],
  ["first", { severity: "warning" }, 3],
  ["worse", {}, 5],
  ["repeat", {}, 5],
  ["repeat", { state: "acknowledged" }, 1],
  ["worse", { isQuiet: true }, 1],
  ["advice", {}, 1],
  ["acknowledged", { state: "acknowledged" }, 1],
  ["resolved", ENDED, 1],
] as const)("%s with %j has priority %i, and replaces what the app shows", (reason, over, priority) => {
  const body = toNtfyNotification(messageOf({ reason, ...over }));
  expect(body).toMatchObject({ priority, sequence_id: SEQUENCE });
});

test("posts to the server of the topic, with the topic in the body", async () => {
  const receiver = await startReplyQueue();
  onTestFinished(() => receiver.close());
  for (const path of ["topic_1", "base/topic_1", "base/topic_1/"]) {
    receiver.reply(200, ANSWERS["ntfy"]?.body);
    const network = { allowPrivateNetworks: true };
    const url = createSecret(`${receiver.url}/${path}`);
    await ntfy.open({ name: "it", url, clock: Date.now, network }).send(messageOf(), sendOptions());
  }
  expect(receiver.requests.map(({ path }) => path)).toEqual(["/", "/base/", "/base/"]);
  for (const { body, headers } of receiver.requests) {
    expect(JSON.parse(body)).toMatchObject({ topic: "topic_1" });
    expect(headers).not.toHaveProperty("authorization");
  }
});

test("sends the token, and a refusal names the reason without token and topic", async () => {
  const receiver = await startReplyQueue();
  onTestFinished(() => receiver.close());
  receiver.reply(403, { code: 40301, http: 403, error: `forbidden ${CANARY}` });
  receiver.reply(429, { code: 42908, http: 429, error: "limit reached: daily message quota reached" });
  const notifier = POSTING["ntfy"]?.(receiver.url);
  const send = () => failureOf(notifier?.send(messageOf(), sendOptions()) ?? Promise.resolve());
  expect((await send()).message).toMatch(/ 403, forbidden$/);
  expect(await send()).toMatchObject({
    disposition: "wait",
    message: expect.stringMatching(/ 429, daily message quota reached$/),
  });
  expect(receiver.requests[0]?.headers.authorization).toBe(`Bearer tk_${CANARY}`);
});

test.each(["https://ntfy.example/", "https://ntfy.example/a.b"])("%s names no topic", (url) => {
  const open = () => ntfy.open({ name: "it", url: createSecret(url), clock: Date.now, network: {} });
  expect(open).toThrow("channel it: url: must end in the name of a topic");
});
