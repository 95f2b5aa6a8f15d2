import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  DISCORD_LIMITS,
  toDiscord,
  toDiscordMessage,
  toDiscordNote,
  toDiscordQuote,
} from "#delivery/receivers/channels/discord/discord.ts";
import { toCodeSpan } from "#delivery/rules/message/write-document.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type ReplyQueue, startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { stringsOf } from "../../support/characters.ts";
import { describeFormat, ENDED } from "../../support/format-promises.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { CONSOLE, messageOf, messageSaying } from "../../support/messages.ts";
import { CANARY, failureOf, POSTING, sendOptions } from "../../support/receiver.ts";
import { discordRequest } from "./schema.ts";

describeFormat("discord", toDiscordMessage, discordRequest);

test.each(Object.entries(HOSTILE))("%s formats and mentions nothing (F71)", (_name, text) => {
  for (const reason of ["first", "advice", "resolved"] as const) {
    const message = messageSaying(text, { reason, howToSilence: null });
    const { url: _, ...embed } = toDiscordMessage(message).embeds?.[0] ?? { url: "" };
    const shown = [toDiscordMessage(message).content, toDiscordNote(message).content, ...stringsOf(embed)]
      .join("\n")
      .replaceAll(`](<${CONSOLE}>)`, "\\]")
      .replaceAll(/`[^`\n]*`/g, "")
      .replaceAll(/\\[^\p{L}\p{N}\s]/gu, "")
      .replaceAll(/^\*\*[\w ',.()]+\*\*(?=$|: )|^> |^\[(?=[^\n]*$)/gm, "");
    expect(shown).not.toMatch(/[*_~`|<>#@[\]]/);
  }
});

describe.each(["x", "💥"])("of %s", (unit) => {
  test("a text of the maximum length stays whole, and a longer one is cut between code points", () => {
    expect(toDiscord(unit.repeat(256), 256)).toBe(unit.repeat(256));
    expect(toDiscord(unit.repeat(257), 256)).toBe(`${unit.repeat(255)}…`);
    expect(toDiscordQuote([unit.repeat(98)], 100)).toBe(`> ${unit.repeat(98)}`);
    expect(toDiscordQuote([unit.repeat(99)], 100)).toBe(`> ${unit.repeat(97)}…`);
    expect(toCodeSpan(unit.repeat(59), 60)).toBe(`\`${unit.repeat(57)}…\``);
  });

  test("a title fills its limit", () => {
    const title = (size: number) => {
      const message = messageOf({ kind: "spike", zoneId: null, ruleId: null, ruleTitle: unit.repeat(size) });
      return toDiscordMessage(message).embeds?.[0].title ?? "";
    };
    expect(Array.from(title(200)).length).toBeLessThanOrEqual(DISCORD_LIMITS.title);
    expect(title(500)).toMatch(/…$/);
  });
});

test("an escape is kept whole or left out", () => {
  expect(toDiscord("***", 6)).toBe("\\*\\*\\*");
  expect(toDiscord("****", 6)).toBe("\\*\\*…");
});

describe("in place", () => {
  let receiver: ReplyQueue;
  const send = (over: Partial<AlertMessage>, providerReference: string | null) =>
    POSTING.discord?.(receiver.url).send(messageOf(over), sendOptions({ providerReference }));
  const asked = () =>
    receiver.requests.map(({ method, path }) => `${method} ${path.replaceAll(CANARY, "T")}`);
  const CREATE = "POST /api/webhooks/1/T?thread_id=9&wait=true";
  const EDIT = "PATCH /api/webhooks/1/T/messages/42?thread_id=9";

  beforeEach(async () => {
    receiver = await startReplyQueue();
  });
  afterEach(() => receiver.close());

  test("the first message is posted, and later ones edit it in the same thread", async () => {
    for (let call = 0; call < 3; call += 1) receiver.reply(200, { id: "42" });

    expect(await send({}, null)).toEqual({ providerReference: "42" });
    expect(await send({ reason: "advice" }, "42")).toEqual({ providerReference: "42" });
    expect(await send({ reason: "resolved", ...ENDED }, "42")).toEqual({ providerReference: "42" });

    expect(asked()).toEqual([CREATE, EDIT, EDIT]);
    for (const { body } of receiver.requests) discordRequest.parse(JSON.parse(body));
  });

  test.each(["worse", "repeat"] as const)(
    "%s is also said anew, and the edited one stays the one to edit",
    async (reason) => {
      receiver.reply(200, { id: "42" });
      receiver.reply(200, { id: "43" });
      expect(await send({ reason }, "42")).toEqual({ providerReference: "42" });
      expect(asked()).toEqual([EDIT, CREATE]);
      discordRequest.parse(JSON.parse(receiver.requests[1]?.body ?? ""));
    },
  );

  test("a reminder of an acknowledged alert only edits the message", async () => {
    receiver.reply(200, { id: "42" });
    await send({ reason: "repeat", state: "acknowledged" }, "42");
    expect(asked()).toEqual([EDIT]);
  });

  test("a message that someone deleted is posted anew", async () => {
    receiver.reply(404, { code: 10_008, message: "Unknown Message" });
    receiver.reply(200, { id: "44" });
    expect(await send({ reason: "worse" }, "42")).toEqual({ providerReference: "44" });
    expect(asked()).toEqual([EDIT, CREATE]);
  });

  test("a webhook that someone deleted is refused for good", async () => {
    receiver.reply(404, { code: 10_015 });
    receiver.reply(404, { code: 10_015 });
    const error = await failureOf(send({ reason: "advice" }, "42") ?? Promise.resolve());
    expect(error).toMatchObject({ code: "ENDPOINT_REJECTED", disposition: "give-up" });
  });

  test("a reference that is no id is never part of an address", async () => {
    receiver.reply(200, { id: "45" });
    expect(await send({ reason: "advice" }, "../../../x")).toEqual({ providerReference: "45" });
    expect(asked()).toEqual([CREATE]);
  });

  test.each(["", "[]", '{"id":"../x"}', "{"])(
    "an answer %j, without the message, is not taken for delivered",
    async (body) => {
      receiver.reply(200, body);
      await expect(send({}, null)).rejects.toMatchObject({
        code: "ENDPOINT_UNAVAILABLE",
        disposition: "retry",
      });
    },
  );
});

test("a phone's preview shows the headline", () => {
  const headline = "rule 942100 in zone 101 is spiking, 312 events in 3 min";
  expect(toDiscordMessage(messageOf({ headline })).content).toBe(`CRITICAL firing\\: ${headline}`);
});
