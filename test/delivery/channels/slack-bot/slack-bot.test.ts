import { afterEach, beforeEach, expect, test } from "vitest";
import { toWholeSlackMessage } from "#delivery/receivers/channels/slack/slack.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type ReplyQueue, startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { messageOf } from "../../support/messages.ts";
import { CANARY, failureOf, POSTING, sendOptions } from "../../support/receiver.ts";
import { slackPost, slackReply, slackUpdate, slackWords } from "../slack/schema.ts";

describeFormat("slack-bot", toWholeSlackMessage, slackWords);

const REFERENCE = "C0123:1732197780.000100";
const TAKEN = { ok: true, channel: "C0123", ts: "1732197780.000100" };

let receiver: ReplyQueue;
const send = async (over: Partial<AlertMessage>, providerReference: string | null) =>
  POSTING["slack-bot"]?.(receiver.url).send(messageOf(over), sendOptions({ providerReference }));
const asked = () => receiver.requests.map(({ path }) => path);
const bodyOf = (index: number): unknown => JSON.parse(receiver.requests[index]?.body ?? "");

beforeEach(async () => {
  receiver = await startReplyQueue();
});
afterEach(() => receiver.close());

test("the first message is posted with the token, and later ones edit it", async () => {
  for (let call = 0; call < 3; call += 1) receiver.reply(200, TAKEN);

  expect(await send({}, null)).toEqual({ providerReference: REFERENCE });
  expect(await send({ reason: "advice" }, REFERENCE)).toEqual({ providerReference: REFERENCE });
  expect(await send({ reason: "resolved", ...ENDED }, REFERENCE)).toEqual({ providerReference: REFERENCE });

  expect(asked()).toEqual(["/api/chat.postMessage", "/api/chat.update", "/api/chat.update"]);
  expect(receiver.requests[0]?.headers.authorization).toBe(`Bearer ${CANARY}`);
  expect(slackPost.parse(bodyOf(0))).toMatchObject({ channel: "#alerts" });
  expect(slackUpdate.parse(bodyOf(2))).toMatchObject({ channel: "C0123", ts: "1732197780.000100" });
});

test("a resolved message keeps the facts, without the firing sign and the silence command", () => {
  const whole = JSON.stringify(toWholeSlackMessage(messageOf({ reason: "resolved", ...ENDED })));
  expect(whole).toContain("203.0.113.7");
  expect(whole).toContain("Block AS64500");
  expect(whole).not.toMatch(/🔴|Silence/u);
});

test.each(["worse", "repeat"] as const)(
  "%s edits the message, then posts in the thread and in the channel",
  async (reason) => {
    receiver.reply(200, TAKEN);
    receiver.reply(200, { ...TAKEN, ts: "1732197999.000200" });
    expect(await send({ reason }, REFERENCE)).toEqual({ providerReference: REFERENCE });
    expect(asked()).toEqual(["/api/chat.update", "/api/chat.postMessage"]);
    expect(slackReply.parse(bodyOf(1))).toMatchObject({ channel: "C0123", thread_ts: "1732197780.000100" });
  },
);

test.each([
  "message_not_found",
  "cant_update_message",
  "edit_window_closed",
  "channel_not_found",
  "is_inactive",
])("where the edit fails with %s the message is posted anew", async (error) => {
  receiver.reply(200, { ok: false, error });
  receiver.reply(200, { ...TAKEN, ts: "1732198888.000300" });
  expect(await send({ reason: "resolved", ...ENDED }, REFERENCE)).toEqual({
    providerReference: "C0123:1732198888.000300",
  });
});

test.each([
  ["ratelimited", "wait", "ENDPOINT_BUSY"],
  ["internal_error", "retry", "ENDPOINT_UNAVAILABLE"],
  ["service_unavailable", "retry", "ENDPOINT_UNAVAILABLE"],
  ["invalid_auth", "give-up", "ENDPOINT_REJECTED"],
  ["not_in_channel", "give-up", "ENDPOINT_REJECTED"],
  ["msg_too_long", "give-up", "ENDPOINT_REJECTED"],
])("a 200 that says %s is a failure: %s, %s (F62)", async (error, disposition, code) => {
  for (const reference of [null, REFERENCE]) {
    receiver.reply(200, { ok: false, error });
    const failure = await failureOf(send({}, reference));
    expect(failure).toMatchObject({ disposition, code });
    expect(failure.message).toMatch(new RegExp(` 200, ${error}$`));
  }
});

test("a reminder of an acknowledged alert only edits the message", async () => {
  receiver.reply(200, TAKEN);
  await send({ reason: "repeat", state: "acknowledged" }, REFERENCE);
  expect(asked()).toEqual(["/api/chat.update"]);
});

test.each(["", "ok", "{}", "[]", '{"ok":"yes"}', "null"])(
  "a 200 that says %j says nothing and is retried",
  async (body) => {
    receiver.reply(200, body);
    expect(await failureOf(send({}, null))).toMatchObject({
      code: "ENDPOINT_UNAVAILABLE",
      disposition: "retry",
    });
  },
);

test("an error that echoes the token is not repeated (F70)", async () => {
  receiver.reply(200, { ok: false, error: CANARY });
  expect((await failureOf(send({}, null))).message).not.toContain(CANARY);
});

test.each(["../x", "C0123", "c:1.2", "C0123:1.2:3", "C0123:x"])(
  "%j is no reference to edit",
  async (reference) => {
    receiver.reply(200, TAKEN);
    await send({ reason: "advice" }, reference);
    expect(asked()).toEqual(["/api/chat.postMessage"]);
  },
);
