/** An alert as a message of Discord. */

import { describeCount } from "#delivery/rules/message/describe-alert.ts";
import { showsMembers, toMembersFile } from "#delivery/rules/message/group-members.ts";
import { FULL_CAPS, type Outline, outlineAlert } from "#delivery/rules/message/outline-alert.ts";
import { takeFitting, toMemberLines } from "#delivery/rules/message/outline-lines.ts";
import { formatIso } from "#lib/format.ts";
import { joinWithin, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";

/**
 * Discord's limits in characters; `total` is over all texts of a message's embeds (discord.com/developers, "Embed
 * Limits"). The budgets below add up to less for every message.
 */
export const DISCORD_LIMITS = {
  content: 2_000,
  title: 256,
  description: 4_096,
  fields: 25,
  fieldName: 256,
  fieldValue: 1_024,
  footer: 2_048,
  total: 6_000,
} as const;
const HEADLINE_CHARS = 600;
const ADVICE_CHARS = 2_000;
/** Minimum space for the advice, also if the links are as long as possible. */
const LEAST_ADVICE_CHARS = 600;
const LINK_TITLE_CHARS = 60;
/** Space for `5 more do not fit here`. */
const MORE_LINKS_CHARS = 30;
const VALUE_CHARS = 60;
const VERDICT_CHARS = 140;
const COMMAND_CHARS = 300;
/** Maximum length of the advice in a message that lists rules. It is enough to say what to look at first. */
const ADVICE_CHARS_BESIDE = 400;
const MEMBER_LINE_CHARS = 600;
const measureDiscord = (text: string) => Array.from(toDiscord(text, DISCORD_LIMITS.description)).length;
export const MEMBER_ROWS = 6;
const CAPS = {
  ...FULL_CAPS,
  headline: HEADLINE_CHARS,
  // Leaves space for the two backticks.
  value: VALUE_CHARS - 2,
  verdict: VERDICT_CHARS,
  members: { rows: MEMBER_ROWS, rowChars: 70, chars: 400, measure: measureDiscord, elsewhere: "attached" },
};
export const DISCORD_FILE = "rules.txt";

const COLORS: Readonly<Record<AlertMessage["severity"], number>> = {
  critical: 0xd32f2f,
  error: 0xf57c00,
  warning: 0xfbc02d,
  info: 0x1976d2,
};
const GREEN = 0x388e3c;

interface DiscordField {
  readonly name: string;
  readonly value: string;
  readonly inline: true;
}

export interface DiscordMessage {
  readonly content: string;
  /** Empty, so that no text can notify anybody. */
  readonly allowed_mentions: { readonly parse: readonly never[] };
  /** The attachments, in the order of the request's files. */
  readonly attachments?: readonly [{ readonly id: 0; readonly filename: typeof DISCORD_FILE }];
  readonly embeds?: readonly [
    {
      readonly title: string;
      readonly url?: string;
      readonly description: string;
      readonly color: number;
      readonly timestamp: string;
      readonly fields: readonly DiscordField[];
    },
  ];
}

/** Returns the links that fit, and the number of the others. A link is never cut. */
function renderLinks({ links }: Outline, chars: number): string {
  const texts = links.map(({ title, href }) => `[${toDiscord(title, LINK_TITLE_CHARS)}](<${href}>)`);
  const kept = takeFitting(texts, chars - MORE_LINKS_CHARS, (text) => text.length + 3);
  const missing = links.length - kept.length;
  return [...kept, ...(missing === 0 ? [] : [`${missing} more do not fit here`])].join(" · ");
}

function renderAdvice({ advice, members }: Outline, room: number): string {
  if (advice === null) return "";
  const heading = `**${advice.heading}**\n`;
  const chars = Math.min(members === null ? ADVICE_CHARS : ADVICE_CHARS_BESIDE, room - heading.length);
  return `${heading}${toDiscordQuote(advice.lines, chars)}`;
}

function renderRows(rows: Outline["verdict"], chars: number): string[] {
  return rows.map(({ label, text, isCode = false }) => {
    return `**${label}**: ${isCode ? toDiscordCode(text, chars) : toDiscord(text, chars)}`;
  });
}

function renderLines({ members, digest }: Outline): string[] {
  const [heading, ...lines] = toMemberLines(members).map((line) => toDiscord(line, MEMBER_LINE_CHARS));
  return [
    ...(heading === undefined ? [] : [`**${heading}**`, ...lines]),
    ...digest.map((line) => toDiscord(line, MEMBER_LINE_CHARS)),
  ];
}

const countChars = (text: string) => Array.from(text).length;

/** Returns at most `room` characters. Links and advice share the space that the other parts leave. */
function renderDescription(outline: Outline, room: number): string {
  const { headline, facts, details, sparkline } = outline;
  const head = [
    ...renderRows(outline.verdict, VERDICT_CHARS),
    toDiscord(headline, HEADLINE_CHARS),
    sparkline === "" ? "" : `\`${sparkline}\``,
    ...facts,
    ...takeFitting(
      details.map((line) => toDiscord(line, MEMBER_LINE_CHARS)),
      room - HEADLINE_CHARS - LEAST_ADVICE_CHARS,
      (line) => countChars(line) + 1,
    ),
  ];
  const commands = renderRows(outline.commands, COMMAND_CHARS);
  const lines = [...commands, ...renderLines(outline)];
  const used = [...head, ...lines].reduce((sum, text) => sum + countChars(text) + 1, 0);
  const links = renderLinks(outline, room - used - LEAST_ADVICE_CHARS);
  const advice = renderAdvice(outline, room - used - countChars(links) - 2);
  return [...head, links, ...lines, advice].filter((part) => part !== "").join("\n");
}

function renderFields({ top }: Outline): DiscordField[] {
  return top.map(({ label, rows }) => ({
    name: label,
    value: rows
      .map(({ value, count, share }) => `${toDiscordCode(value, VALUE_CHARS)} ${count} (${share})`)
      .join("\n"),
    inline: true,
  }));
}

/** Returns a group's whole list of rules if the message has no space for it; null if nothing is to be attached. */
export function toDiscordFile(message: AlertMessage): string | null {
  const rest = outlineAlert(message, "whole", CAPS).members?.rest ?? [];
  return rest.length > 0 && showsMembers(message) ? toMembersFile(message) : null;
}

/** Returns all facts as one message, which later transitions edit. An edit keeps the attachments. */
export function toDiscordMessage(message: AlertMessage): DiscordMessage {
  const outline = outlineAlert(message, "whole", CAPS);
  const { status, statusText, subject, brief, links } = outline;
  const title = toDiscord(subject === "" ? statusText : `${statusText} · ${subject}`, DISCORD_LIMITS.title);
  const fields = renderFields(outline);
  const beside = [title, ...fields.flatMap(({ name, value }) => [name, value])].map(countChars);
  const room = DISCORD_LIMITS.total - beside.reduce((sum, chars) => sum + chars, 0);
  const [first] = links;
  return {
    // A phone shows this text in its notification.
    content: toDiscord(`${statusText}: ${brief || subject}`, HEADLINE_CHARS),
    allowed_mentions: { parse: [] },
    embeds: [
      {
        title,
        ...(first === undefined ? {} : { url: first.href }),
        description: renderDescription(outline, Math.min(room, DISCORD_LIMITS.description)),
        color: status === "resolved" ? GREEN : COLORS[message.severity],
        timestamp: formatIso(message.startedAt),
        fields,
      },
    ],
  };
}

/** Returns the additional message for a transition that must notify, because an edit notifies nobody. */
export function toDiscordNote(message: AlertMessage): DiscordMessage {
  const { statusText, subject } = outlineAlert(message, "transition");
  const phrase = describeCount(message);
  const counted = phrase === null ? "" : `: ${phrase.count} ${phrase.against}`;
  const content = `${toDiscord(`${statusText} · ${subject}`, 400)}${counted}`;
  return { content, allowed_mentions: { parse: [] } };
}

/** Every character that Discord's Markdown, mentions, emoji or masked links use. A backslash makes it literal. */
const MARKS = /[\\*_~|>#[\]()<@:+-]/;
/** Looks like a backtick. No backslash prevents a real backtick from ending a code span. */
const BACKTICK = "ˋ";

function escapeLine(line: string): string[] {
  return Array.from(line, (character) => {
    return character === "`" ? BACKTICK : MARKS.test(character) ? `\\${character}` : character;
  });
}

/**
 * Escapes hostile text so that it cannot format, link or mention. The result has at most `maxChars` code points, and no
 * escape is cut in half.
 */
export function toDiscord(text: string, maxChars: number): string {
  return joinWithin(escapeLine(toLine(text, maxChars)), maxChars);
}

/** Escapes hostile text and quotes it line by line. */
export function toDiscordQuote(lines: readonly string[], maxChars: number): string {
  const pieces = lines.flatMap((line, index) => [...(index === 0 ? [] : ["\n"]), "> ", ...escapeLine(line)]);
  return joinWithin(pieces, maxChars);
}

/** Escapes a hostile value for a code span, in which only the backtick has a meaning. */
export function toDiscordCode(text: string, maxChars: number): string {
  return `\`${toLine(text.replaceAll("`", BACKTICK), maxChars - 2) || "-"}\``;
}
