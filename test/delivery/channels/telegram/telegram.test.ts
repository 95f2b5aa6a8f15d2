import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { telegram, toTelegram, toTelegramText } from "#delivery/receivers/channels/telegram/telegram.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type ReplyQueue, startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { incidentWith, messageOf, messageSaying } from "../../support/messages.ts";
import { ANSWERS, CANARY, failureOf, POSTING, sendOptions } from "../../support/receiver.ts";
import { telegramEdit, telegramPost, telegramText } from "./schema.ts";

describeFormat("telegram", toTelegramText, telegramText);

test.each(Object.entries(HOSTILE))("%s formats, links and mentions nothing (F71)", (_name, text) => {
  for (const reason of ["first", "advice", "resolved"] as const) {
    const html = toTelegramText(messageSaying(text, { reason }));
    const prose = html
      .replaceAll(/<code>[^<]*<\/code>|<a href="[^"]*">/g, "")
      .replaceAll(/<\/?(?:b|a|blockquote)(?: expandable)?>/g, "");
    expect(prose).not.toMatch(/[<>]|[@#$/](?=[\p{L}\p{N}_])|\.(?=\p{L})/u);
  }
});

test("limits count code points of the text that is shown", () => {
  for (const unit of ["x", "💥", "&", "<"]) {
    const shown = (size: number) => toTelegram(unit.repeat(size), 40).replaceAll(/&\w+;/g, "&");
    expect(Array.from(shown(40))).toHaveLength(40);
    expect(shown(40)).not.toContain("…");
    expect(Array.from(shown(41))).toHaveLength(40);
    expect(shown(41)).toMatch(/…$/);
  }
});

describe("a bot", () => {
  let receiver: ReplyQueue;
  const REFERENCE = "-1001:42";
  const send = (over: Partial<AlertMessage>, providerReference: string | null = null) =>
    POSTING["telegram"]?.(receiver.url).send(messageOf(over), sendOptions({ providerReference })) ??
    Promise.reject();
  const asked = () => receiver.requests.map(({ path }) => path.split("/").at(-1));
  const bodyOf = (index: number) => JSON.parse(receiver.requests[index]?.body ?? "");
  const refuse = (status: number, description: string, more: object = {}) =>
    receiver.reply(status, { ok: false, error_code: status, description, ...more });
  const accept = () => receiver.reply(200, ANSWERS["telegram"]?.body);

  beforeEach(async () => {
    receiver = await startReplyQueue();
  });
  afterEach(() => receiver.close());

  test("posts the first message and edits it later", async () => {
    for (let call = 0; call < 3; call += 1) accept();
    expect(await send({})).toEqual({ providerReference: REFERENCE });
    await send({ reason: "advice" }, REFERENCE);
    expect(await send({ reason: "resolved", ...ENDED }, REFERENCE)).toEqual({ providerReference: REFERENCE });
    expect(asked()).toEqual(["sendMessage", "editMessageText", "editMessageText"]);
    expect(receiver.requests[0]?.path).toBe(`/bot1:${CANARY}/sendMessage`);
    expect(telegramPost.parse(bodyOf(0))).toMatchObject({ chat_id: "-1001" });
    expect(telegramEdit.parse(bodyOf(2))).toMatchObject({ chat_id: "-1001", message_id: 42 });
  });

  test.each(["worse", "repeat"] as const)(
    "edits the message for %s, and notifies with a reply",
    async (reason) => {
      accept();
      accept();
      expect(await send({ reason }, REFERENCE)).toEqual({ providerReference: REFERENCE });
      expect(asked()).toEqual(["editMessageText", "sendMessage"]);
      expect(telegramPost.parse(bodyOf(1)).reply_parameters?.message_id).toBe(42);
    },
  );

  test("takes an edit that changes nothing for done, as after a lost answer", async () => {
    refuse(400, "Bad Request: message is not modified: specified new message content is the same");
    expect(await send({ reason: "advice" }, REFERENCE)).toEqual({ providerReference: REFERENCE });
    expect(asked()).toEqual(["editMessageText"]);
  });

  test.each(["Bad Request: message to edit not found", "Bad Request: message can't be edited"])(
    "posts anew where the edit is refused with %s",
    async (description) => {
      refuse(400, description);
      accept();
      expect(await send({ reason: "advice" }, "-1001:7")).toEqual({ providerReference: REFERENCE });
      expect(asked()).toEqual(["editMessageText", "sendMessage"]);
    },
  );

  test("waits as long as the body of a 429 says, for posts and for edits", async () => {
    for (const reference of [null, REFERENCE]) {
      refuse(429, "Too Many Requests: retry after 31", { parameters: { retry_after: 31 } });
      const error = await failureOf(send({}, reference));
      expect(error).toMatchObject({ code: "ENDPOINT_BUSY", disposition: "wait", waitMs: 31_000 });
    }
  });

  test.each([
    [400, "Bad Request: chat not found", "chat not found"],
    [403, "Forbidden: bot was kicked from the supergroup chat", "bot was kicked"],
    [401, "Unauthorized", "Unauthorized"],
    [404, "Not Found", null],
  ])("gives up on %i and quotes a known reason of %s", async (status, description, quoted) => {
    refuse(status, `${description} ${CANARY}`);
    const error = await failureOf(send({}));
    expect(error).toMatchObject({ code: "ENDPOINT_REJECTED", disposition: "give-up" });
    expect(error.message).toMatch(new RegExp(` ${status}${quoted === null ? "" : `, ${quoted}`}$`));
  });

  test("sends a long list of rules as a file, without a sound", async () => {
    accept();
    accept();
    const sent = await POSTING["telegram"]?.(receiver.url).send(incidentWith(5_000), sendOptions());
    expect(sent).toEqual({ providerReference: REFERENCE, messages: 2 });
    expect(asked()).toEqual(["sendMessage", "sendDocument"]);
    expect(receiver.requests[1]?.body).toMatch(/name="disable_notification"\r\n[^\r]*\r\n\r\ntrue\r\n/);
    expect(receiver.requests[1]?.body).toContain("\n101\t104999\terror\t");
  });

  test.each(["../x", "-1001", "x:1", "1:2:3"])("%j is no reference to edit", async (reference) => {
    accept();
    await send({ reason: "advice" }, reference);
    expect(asked()).toEqual(["sendMessage"]);
  });
});

test.each(["", "abc", "1:a/../b", "1:a b"])("the token %j is refused and not shown", (token) => {
  const open = () =>
    telegram.open({ name: "it", token: createSecret(token), chat: "-1", clock: Date.now, network: {} });
  expect(open).toThrow("channel it: token: must be a bot's, as 123456:ABC");
});
