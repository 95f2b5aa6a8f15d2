import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  SLACK_LIMITS,
  toMrkdwn,
  toMrkdwnCode,
  toMrkdwnQuote,
  toSlackMessage,
} from "#delivery/receivers/channels/slack/slack.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type ReplyQueue, startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { HOSTILE } from "../../support/hostile.ts";
import {
  CONSOLE,
  changesMessage,
  hostileMessage,
  messageOf,
  messageSaying,
  sourcesMessage,
} from "../../support/messages.ts";
import { POSTING, sendOptions } from "../../support/receiver.ts";

const ended = { state: "resolved", endedAt: Date.UTC(2026, 10, 22, 9, 26) } as const;
const REASONS = ["first", "worse", "repeat", "advice", "resolved"] as const;
const size = (text: string) => Array.from(text).length;

interface Text {
  readonly type: string;
  readonly text: string;
  readonly verbatim?: boolean;
}

/** Every text object of a message, with the kind of its block. */
function textsOf(message: AlertMessage): { block: string; text: Text; isField: boolean }[] {
  return toSlackMessage(message).blocks.flatMap((block) => {
    const fields = "fields" in block ? block.fields : "elements" in block ? block.elements : [];
    const texts = "text" in block ? [block.text] : fields;
    return texts.map((text) => ({ block: block.type, text, isField: "fields" in block }));
  });
}

describe("posting", () => {
  let receiver: ReplyQueue;
  beforeEach(async () => {
    receiver = await startReplyQueue();
  });
  afterEach(() => receiver.close());

  test("posts blocks with a plain text beside them and asks for no previews", async () => {
    receiver.reply(200, "ok");
    await POSTING.slack?.(receiver.url).send(messageOf(), sendOptions());

    const [request] = receiver.requests;
    expect(request?.method).toBe("POST");
    expect(JSON.parse(request?.body ?? "")).toMatchObject({
      text: "🔴 CRITICAL firing: SQL injection attempts on zone 101 are 68 times their usual rate",
      mrkdwn: false,
      unfurl_links: false,
      unfurl_media: false,
    });
  });
});

test("a block that would be empty is left out: Slack refuses the whole message for it", () => {
  const { blocks } = toSlackMessage(messageOf({ howToSilence: null, links: [], state: "acknowledged" }));
  expect(blocks.map(({ type }) => type)).not.toContain("context");
  const linked = toSlackMessage(messageOf({ howToSilence: null }));
  expect(JSON.stringify(linked)).not.toContain("Silence");
});

test.each(REASONS)("%s says since when, in UTC and by name", (reason) => {
  const endedAt = reason === "resolved" ? ended.endedAt : null;
  expect(JSON.stringify(toSlackMessage(messageOf({ reason, endedAt })))).toContain("2026-11-21 14:03 UTC");
});

test.each<[string, AlertMessage]>([
  ["first", messageOf()],
  ["advice", messageOf({ reason: "advice" })],
  ["resolved", messageOf({ reason: "resolved", ...ended })],
  ["self", messageOf({ kind: "self", zoneId: null, ruleId: null, sparkline: [] })],
  ["sources", sourcesMessage()],
  ["changes", changesMessage()],
  ["hostile", hostileMessage()],
  ["hostile-advice", hostileMessage({ reason: "advice" })],
  ["hostile-resolved", hostileMessage({ reason: "resolved", ...ended })],
])("%s looks as it looked (F71)", async (name, message) => {
  const json = `${JSON.stringify(toSlackMessage(message), null, 2)}\n`;
  await expect(json).toMatchFileSnapshot(`golden/${name}.golden.json`);
});

describe.each(REASONS)("as %s", (reason) => {
  test.each(Object.entries(HOSTILE))("%s formats, links and mentions nothing (F71)", (_name, text) => {
    const message = messageSaying(text, { reason });
    const markup = [toSlackMessage(message).text, ...textsOf(message).map((one) => one.text.text)]
      .join("\n")
      // Ours: the link to the console, its label apart.
      .replaceAll(`<${CONSOLE}|`, "");
    expect(markup).not.toMatch(/<|:\/\/|www\.|mailto:|javascript:\/\//i);
    expect(markup.replaceAll(/&(?:amp|lt|gt);/g, "")).not.toContain("&");
    expect(markup.replaceAll("\u2060", "")).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
    for (const { text: shown } of textsOf(message).filter(({ text: { type } }) => type === "mrkdwn")) {
      expect(shown.verbatim).toBe(true);
      // Outside code spans hostile text brings no mark of its own: what is left are our own bold pairs.
      const prose = shown.text.replaceAll(/`[^`\n]*`/g, "").replaceAll(/(?:^|[\s(])\*[\w ',.()]+\*/gm, "");
      expect(prose).not.toMatch(/[*_~`]|[@#](?=[\p{L}\p{N}_])|:skull:/u);
    }
  });

  test.each(["x", "💥", "&", "`", "_", "@a ", "x\n", "\u{e0041}"])(
    "any amount of %j stays within Slack's limits",
    (unit) => {
      const message = messageSaying(unit.repeat(20_000), {
        reason,
        sparkline: Array.from({ length: 5_000 }, (_, index) => index),
        links: Array.from({ length: 60 }, () => ({
          title: unit.repeat(500),
          url: `https://x.example/${"&".repeat(90)}${"x".repeat(350)}`,
        })),
      });
      const { blocks, text } = toSlackMessage(message);
      const texts = textsOf(message);

      expect(blocks.length).toBeLessThanOrEqual(SLACK_LIMITS.blocks);
      for (const { block, text: shown, isField } of texts) {
        const limit =
          block === "header" ? SLACK_LIMITS.header : isField ? SLACK_LIMITS.field : SLACK_LIMITS.section;
        expect(size(shown.text)).toBeLessThanOrEqual(limit);
        expect(shown.text).not.toBe("");
        expect(shown.text).not.toMatch(/&(?!amp;|lt;|gt;)|\p{Cs}/u);
      }
      const total = texts.reduce((sum, one) => sum + size(one.text.text), size(text));
      expect(total).toBeLessThanOrEqual(SLACK_LIMITS.total);
      const lists = blocks.flatMap((block) => {
        if ("fields" in block) return [block.fields.length];
        return "elements" in block ? [block.elements.length] : [];
      });
      expect(Math.max(0, ...lists)).toBeLessThanOrEqual(10);
    },
  );
});

describe("limits count code points", () => {
  test.each(["x", "💥"])("of %s exactly as many as allowed stay, one more is cut", (unit) => {
    expect(toMrkdwn(unit.repeat(150), 150)).toBe(unit.repeat(150));
    expect(toMrkdwn(unit.repeat(151), 150)).toBe(`${unit.repeat(149)}…`);
    expect(toMrkdwnCode(unit.repeat(48), 50)).toBe(`\`${unit.repeat(48)}\``);
    expect(toMrkdwnCode(unit.repeat(49), 50)).toBe(`\`${unit.repeat(47)}…\``);
    expect(toMrkdwnQuote(unit.repeat(98), { maxLines: 5, maxChars: 100 })).toBe(`> ${unit.repeat(98)}`);
    expect(toMrkdwnQuote(unit.repeat(99), { maxLines: 5, maxChars: 100 })).toBe(`> ${unit.repeat(97)}…`);
  });

  test("an entity is kept whole or left out", () => {
    expect(toMrkdwn("&&&", 15)).toBe("&amp;&amp;&amp;");
    expect(toMrkdwn("&&&&", 15)).toBe("&amp;&amp;…");
    expect(toMrkdwn("&&&", 14)).toBe("&amp;&amp;…");
  });

  test("a header of 150 stays, one of 151 is cut", () => {
    const header = (headline: string) => {
      const message = messageOf({ ruleTitle: null, ruleId: headline, zoneId: null });
      return textsOf(message)[0]?.text.text ?? "";
    };
    expect(size(header("💥".repeat(500)))).toBeLessThanOrEqual(150);
    expect(header("942100")).toBe("🔴 CRITICAL firing · rule 942100");
  });
});
