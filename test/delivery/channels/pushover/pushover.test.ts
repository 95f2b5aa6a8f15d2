import { expect, onTestFinished, test } from "vitest";
import { PUSHOVER_LIMITS, toPushoverMessage } from "#delivery/receivers/channels/pushover/pushover.ts";
import { startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { messageOf, messageSaying } from "../../support/messages.ts";
import { ANSWERS, CANARY, failureOf, POSTING, sendOptions } from "../../support/receiver.ts";
import { pushoverMessage } from "./schema.ts";

describeFormat("pushover", toPushoverMessage, pushoverMessage);

test.each(Object.entries(HOSTILE))("%s names no site and mentions nobody (F71)", (_name, text) => {
  const { title, message } = toPushoverMessage(messageSaying(text));
  expect(`${title}\n${message}`).not.toMatch(/[@](?=[\p{L}\p{N}_])|\.(?=\p{L})/u);
});

test.each(["x", "💥"])("a message of %s fills its limit and never exceeds it", (unit) => {
  const { message } = toPushoverMessage(messageSaying(unit.repeat(5_000)));
  expect(Array.from(message).length).toBeLessThanOrEqual(PUSHOVER_LIMITS.message);
  expect(Array.from(message).length).toBeGreaterThan(PUSHOVER_LIMITS.message - 20);
});

test.each([
  ["first", {}, 1],
  ["first", { severity: "error" }, 0],
  ["first", { severity: "info" }, -1],
  ["worse", {}, 1],
  ["repeat", {}, 1],
  ["repeat", { state: "acknowledged" }, -1],
  ["advice", {}, -1],
  ["resolved", ENDED, -1],
] as const)("%s with %j has priority %i", (reason, over, priority) => {
  expect(toPushoverMessage(messageOf({ reason, ...over }))).toMatchObject({ priority });
});

test("the first link is the button, and the others are counted", () => {
  const [first] = messageOf().links;
  const body = toPushoverMessage(messageOf());
  expect(body).toMatchObject({ url: first?.url, url_title: first?.title });
  expect(body.message).toMatch(/\n1 further link$/);
  expect(toPushoverMessage(messageOf({ links: [] }))).not.toHaveProperty("url");
});

test("the keys are in the body, and a refusal names the wrong one without showing it", async () => {
  const receiver = await startReplyQueue();
  onTestFinished(() => receiver.close());
  const notifier = POSTING["pushover"]?.(receiver.url);
  const send = () => notifier?.send(messageOf(), sendOptions()) ?? Promise.reject();
  receiver.reply(200, ANSWERS["pushover"]?.body);
  expect(await send()).toEqual({ providerReference: null });
  const { token, user, ...message } = JSON.parse(receiver.requests[0]?.body ?? "");
  expect({ token, user }).toEqual({ token: CANARY, user: `u${CANARY}` });
  pushoverMessage.parse(message);

  receiver.reply(400, {
    token: "invalid",
    errors: ["application token is invalid"],
    status: 0,
    seen: CANARY,
  });
  const refused = await failureOf(send());
  expect(refused).toMatchObject({ code: "ENDPOINT_REJECTED", disposition: "give-up" });
  expect(refused.message).toMatch(/ 400, application token is invalid$/);
});
