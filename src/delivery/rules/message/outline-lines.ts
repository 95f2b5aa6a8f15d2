/** The lines of an outline, and what fits into a message. */

import { cutText, toLine } from "#lib/text.ts";
import { type AlertMessage, MAX_LINKS, MAX_URL_CHARS } from "#model/alert-message.ts";
import { NOTICED } from "#model/words.ts";
import type { Outline } from "./outline-alert.ts";

/** Similar characters without a meaning, for those that later programs may read as markup or a mention. */
const LOOKALIKES: Readonly<Record<string, string>> = { "<": "‹", ">": "›", "&": "＆", "`": "ˋ" };

const MENTION = /@(?=[\p{L}\p{N}_])/gu;

/** Makes text harmless for a receiver that forwards it to programs with a markup of their own. */
export function toInert(text: string): string {
  return text.replace(/[<>&`]/g, (mark) => LOOKALIKES[mark] ?? mark).replace(MENTION, "@\u2060");
}

/**
 * Makes text harmless for a receiver with plain text fields, such as PagerDuty. `&`, `<` and `>` stay, so that an
 * address or a command can be copied. `@` and the backtick are replaced, because they have a meaning in the chats to
 * which the receiver forwards.
 */
export function toInertPlain(text: string): string {
  return text.replaceAll("`", LOOKALIKES["`"] ?? "").replace(MENTION, "@\u2060");
}

/** Returns `203.0.113.7 612 (72 %)`. */
export function toRowLine({ value, count, share }: Outline["top"][number]["rows"][number]): string {
  return `${value} ${count} (${share})`;
}

/** Returns the members of a group, indented below their heading. */
export function toMemberLines(members: Outline["members"]): string[] {
  if (members === null) return [];
  const { heading, rows, others, more } = members;
  return [
    `${heading}:`,
    ...[...rows, ...others, ...(more === null ? [] : [more])].map((line) => `  ${line}`),
  ];
}

/** Returns `Who: 4 addresses of 2 networks`. */
export function toLabelled({ label, text }: Outline["verdict"][number]): string {
  return `${label}: ${text}`;
}

/**
 * Returns an outline as lines of plain text, with an empty line between its parts. The title is left out, and the links
 * stand where the caller wants them.
 */
export function toPlainLines(outline: Outline, links: readonly string[] = []): string[] {
  const { headline, verdict, facts, details, sparkline, top, members, digest, advice, commands } = outline;
  const parts = [
    verdict.map(toLabelled),
    [headline, sparkline, ...facts, ...details].filter((line) => line !== ""),
    links,
    commands.map(toLabelled),
    toMemberLines(members),
    digest,
    top.flatMap(({ label, rows }) => [`${label}:`, ...rows.map((row) => `  ${toRowLine(row)}`)]),
    advice === null ? [] : [advice.heading, ...advice.lines.map((line) => `  ${line}`)],
  ];
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? part : ["", ...part]));
}

const MAX_CHARS = 300;
/** A shorter text is cut only at its end, because two short halves would not be readable. */
const LEAST_FOR_HALVES = 24;
const TAIL_SHARE = 0.6;

/** Returns a value that caused events as one harmless line of at most `maxChars` code points. */
export function describeTopValue(key: keyof AlertMessage["top"], value: string, maxChars: number): string {
  const line = toLine(value, MAX_CHARS);
  if (key === "userAgents") return line === "" ? cutText("(none sent)", maxChars) : cutMiddle(line, maxChars);
  const named = key === "asns" && /^\d{1,10}$/.test(line) ? `AS${line}` : line;
  return cutText(named || "-", maxChars);
}

/** Cuts the middle, because the names of browsers begin alike and differ at the end. */
function cutMiddle(text: string, maxChars: number): string {
  const characters = Array.from(text);
  if (characters.length <= maxChars || maxChars < LEAST_FOR_HALVES) return cutText(text, maxChars);
  const tail = Math.ceil((maxChars - 1) * TAIL_SHARE);
  return `${characters.slice(0, maxChars - 1 - tail).join("")}…${characters.slice(-tail).join("")}`;
}

const TITLE_CHARS = 60;

export interface SafeLink {
  readonly title: string;
  /** Normalised, ASCII, without `<`, `>`, `|`, quotes or spaces. */
  readonly href: string;
}

function toHref(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const parsed = new URL(url);
  const isWeb = parsed.protocol === "https:" || parsed.protocol === "http:";
  const href = parsed.href.replace(/[|'"`<>]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return isWeb && parsed.username === "" && parsed.password === "" && href.length <= MAX_URL_CHARS
    ? href
    : null;
}

/** Returns the message's own links if they are plain web addresses. No other link may be active. */
export function toSafeLinks(links: AlertMessage["links"]): SafeLink[] {
  return links.slice(0, MAX_LINKS).flatMap(({ title, url }) => {
    const href = toHref(url);
    return href === null ? [] : [{ title: toLine(title, TITLE_CHARS) || "link", href }];
  });
}

/** Returns the items that fit, whole and in order; an item that is too long is skipped. */
export function takeFitting<Item>(
  items: readonly Item[],
  room: number,
  costOf: (item: Item) => number,
): Item[] {
  let left = room;
  return items.filter((item) => {
    const cost = costOf(item);
    if (cost > left) return false;
    left -= cost;
    return true;
  });
}

/**
 * Returns whether a channel that updates its message in place must notify as well: the alert got worse, has new
 * attackers or an urgent verdict, opened again, or is a reminder that nobody acknowledged. Advice and the end of an alert change the message without notifying.
 */
export function needsNotification({ reason, state, isQuiet = false }: AlertMessage): boolean {
  if (isQuiet) return false;
  if (reason === "repeat") return state === "firing";
  return reason === "turned" || reason === "verdict" || (reason !== "first" && NOTICED.includes(reason));
}
