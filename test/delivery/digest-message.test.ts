import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { toDiscordMessage } from "#delivery/receivers/channels/discord/discord.ts";
import { toEmailMessage } from "#delivery/receivers/channels/email/email.ts";
import { toGoogleChatMessage } from "#delivery/receivers/channels/google-chat/google-chat.ts";
import { toMattermostPost } from "#delivery/receivers/channels/mattermost/mattermost.ts";
import { toNtfyNotification } from "#delivery/receivers/channels/ntfy/ntfy.ts";
import { toPushoverMessage } from "#delivery/receivers/channels/pushover/pushover.ts";
import {
  SLACK_LIMITS,
  toSlackMessage,
  toWholeSlackMessage,
} from "#delivery/receivers/channels/slack/slack.ts";
import { toTeamsMessage } from "#delivery/receivers/channels/teams/teams.ts";
import { toTelegramText } from "#delivery/receivers/channels/telegram/telegram.ts";
import { renderTerminal } from "#delivery/receivers/channels/terminal/render-terminal.ts";
import { paintPlain } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { MAX_BODY_BYTES, toWebhookBodies } from "#delivery/receivers/channels/webhook/webhook-body.ts";
import { buildDigest, countFitting, digestKeyOf, toMember } from "#delivery/rules/digest-message.ts";
import { describeMembers } from "#delivery/rules/message/group-members.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import type { ChannelKind } from "#model/kinds.ts";
import { discordRequest } from "./channels/discord/schema.ts";
import { emailMessage } from "./channels/email/schema.ts";
import { googleChatMessage } from "./channels/google-chat/schema.ts";
import { mattermostPost } from "./channels/mattermost/schema.ts";
import { ntfyNotification } from "./channels/ntfy/schema.ts";
import { pushoverMessage } from "./channels/pushover/schema.ts";
import { slackWords } from "./channels/slack/schema.ts";
import { teamsRequest } from "./channels/teams/schema.ts";
import { telegramText } from "./channels/telegram/schema.ts";
import { capabilitiesOf } from "./support/capabilities.ts";
import { stringsOf } from "./support/characters.ts";
import { messageOf } from "./support/messages.ts";

const HOSTILE = '<!channel> *x* `y` \u001b[31m"\\ <script>&amp; 😀 \u202e'.repeat(6);
const many = (count: number, over: (index: number) => Parameters<typeof messageOf>[0] = () => ({})) =>
  Array.from({ length: count }, (_, index) =>
    messageOf({ alertId: index + 1, ruleId: `9${String(index).padStart(5, "0")}`, ...over(index) }),
  );

/** Returns as many of these messages as one digest of this kind can name, as that digest. */
function fill(kind: ChannelKind, messages: ReturnType<typeof many>) {
  const rate = capabilitiesOf(kind).rate;
  if (rate.digest === null) throw new Error(`${kind} takes no digest`);
  const fitting = messages.slice(0, countFitting(messages.map(toMember), rate.digest));
  const digest = buildDigest(fitting, "digest-1", rate);
  expect(digest.digest?.length).toBeGreaterThan(kind === "pushover" ? 1 : 5);
  return digest;
}

const shapes: [string, ReturnType<typeof many>][] = [
  ["plain rules", many(5_000)],
  ["a zone each", many(5_000, (index) => ({ zoneId: 2_147_480_000 + (index % 3_000) }))],
  ["hostile rules", many(5_000, () => ({ ruleId: HOSTILE }))],
  [
    "resolved",
    many(5_000, () => ({ reason: "resolved", state: "resolved", endedAt: Date.UTC(2026, 10, 21, 15) })),
  ],
];

test.each(shapes)(
  "a full digest of %s keeps within Slack's limits and shows every name",
  (_what, messages) => {
    const digest = fill("slack", messages);
    const { blocks } = toSlackMessage(digest);
    expect(blocks.length).toBeLessThanOrEqual(SLACK_LIMITS.blocks);
    expect(JSON.stringify(blocks).length).toBeLessThan(SLACK_LIMITS.total + 2_000);
    const texts = blocks.map((block) => ("text" in block ? block.text.text : ""));
    for (const text of texts) expect(Array.from(text).length).toBeLessThanOrEqual(SLACK_LIMITS.section);
    const shown = texts.join("\n");
    if (messages[0]?.ruleId === HOSTILE) return;
    expect(shown).not.toContain("…");
    for (const { name } of digest.digest ?? []) expect(shown).toContain(name);
  },
);

const chats = [
  ["slack-bot", toWholeSlackMessage, slackWords],
  ["teams", toTeamsMessage, teamsRequest],
  ["discord", toDiscordMessage, discordRequest],
  ["mattermost", toMattermostPost, mattermostPost],
  ["google-chat", toGoogleChatMessage, googleChatMessage],
  ["telegram", toTelegramText, telegramText],
  ["ntfy", toNtfyNotification, ntfyNotification],
  ["pushover", toPushoverMessage, pushoverMessage],
  ["email", (message: AlertMessage) => toEmailMessage(message, "longwatch.example"), emailMessage],
] as const;

/** Fewer names fit into a notification of a phone. */
const SMALL: Readonly<Record<string, number>> = { ntfy: 30, pushover: 12 };

test.each(
  chats.flatMap(([kind, render, schema]) =>
    shapes.map(([what, messages]) => [kind, what, messages, render, schema] as const),
  ),
)(
  "a full %s digest of %s is a list within the vendor's limits and shows every name",
  (kind, _what, messages, render, schema) => {
    const digest = fill(kind, messages);
    const body = render(digest);
    expect(schema.safeParse(body).error?.issues).toBeUndefined();
    expect(digest.headline).toMatch(/^[\d,]+ alerts in one message/);
    const least = SMALL[kind] ?? 50;
    expect(digest.digest?.length).toBeGreaterThan(messages[0]?.ruleId === HOSTILE ? least / 10 : least);
    if (messages[0]?.ruleId === HOSTILE) return;
    const shown = stringsOf(body).join("\n");
    expect(shown).not.toContain("…");
    for (const { name } of digest.digest ?? []) expect(shown).toContain(name);
  },
);

test.each(shapes)("a full digest of %s keeps below the webhook's limit, untrimmed", (_what, messages) => {
  const body = toWebhookBodies(fill("webhook", messages), 0).first;
  expect(Buffer.byteLength(body)).toBeLessThan(MAX_BODY_BYTES);
  expect(JSON.parse(body)).toMatchObject({ trimmed: false });
});

test.each(shapes)(
  "a full digest of %s shows every name on a terminal, and no control character",
  (_what, messages) => {
    const digest = fill("terminal", messages);
    const text = renderTerminal(digest, { columns: 80, paint: paintPlain });
    expect(stripVTControlCharacters(text)).toBe(text);
    const words = text.replace(/\s|│/g, "");
    for (const { name } of digest.digest ?? []) expect(words).toContain(name.replaceAll(" ", ""));
  },
);

test("a digest is an alert message: firing while any of its alerts is, as grave as the gravest", () => {
  const messages = [
    messageOf({ severity: "info", state: "resolved", reason: "resolved", startedAt: 5, endedAt: 9 }),
    messageOf({ severity: "error", alertId: 8, startedAt: 7 }),
  ];
  const digest = buildDigest(messages, "digest-1", capabilitiesOf("slack").rate);
  expect(alertMessage.parse(digest)).toEqual(digest);
  expect(digest).toMatchObject({
    state: "firing",
    reason: "first",
    severity: "error",
    dedupeKey: "digest-1",
    startedAt: 5,
    endedAt: null,
  });
});

test("alerts are named by zone and kind of transition; those about Longwatch itself by their headline", () => {
  const members = [
    messageOf({ ruleId: "1" }),
    messageOf({ ruleId: "2", zoneId: 102 }),
    messageOf({ ruleId: "3", reason: "resolved" }),
    messageOf({ ruleId: "4" }),
    messageOf({ ruleId: null, zoneId: null, kind: "self", headline: "Channel chat does not deliver" }),
  ].map(toMember);
  expect(describeMembers(members)).toEqual([
    "zone 101 · firing: 1, 4",
    "zone 102 · firing: 2",
    "zone 101 · resolved: 3",
    "Longwatch · firing: Channel chat does not deliver",
  ]);
});

test("the same messages have the same key in any order, and another key on another channel", () => {
  expect(digestKeyOf("chat", ["a", "b"])).toBe(digestKeyOf("chat", ["b", "a"]));
  const keys = [
    digestKeyOf("chat", ["a", "b"]),
    digestKeyOf("pager", ["a", "b"]),
    digestKeyOf("chat", ["ab"]),
  ];
  expect(new Set(keys).size).toBe(3);
  for (const key of keys) expect(key).toMatch(/^[\w-]{1,64}$/);
});

test("a name that alone is too long still goes: nothing is dropped", () => {
  const room = { in: "headline", maxChars: 10, charsBeside: 2 } as const;
  expect(countFitting(many(3, () => ({ ruleId: HOSTILE })).map(toMember), room)).toBe(1);
});
