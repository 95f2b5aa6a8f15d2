/** A message as a document: blocks in the order of a person's questions, which every channel writes in its own markup. */

import { formatNumber, formatShare } from "#lib/format.ts";
import { cutText, toLine, toLines } from "#lib/text.ts";
import { type AlertMessage, MAX_LINKS, MAX_URL_CHARS } from "#model/alert-message.ts";
import { describeAlert, type Head, TOP_KEYS, TOP_LABELS } from "./describe-alert.ts";
import { type OutlineRow, outlineOpen } from "./describe-verdict.ts";
import { type MemberRoom, type MembersOutline, outlineGroup } from "./group-members.ts";
import { drawSparkline } from "./text-width.ts";

const MEMBERS: MemberRoom = { rows: 10, rowChars: 160, chars: 1_200 };
/** Maximum lengths in code points of a line in the block of this name. */
const CAPS = {
  title: 200,
  headline: 500,
  verdict: 300,
  /** For facts that may quote a request. */
  facts: 300,
  commands: 500,
  links: 80,
  /** For a value of a top list. Two characters of it are for the marks of code. */
  top: 122,
  /** For the whole recommendation. */
  advice: { maxLines: 30, maxChars: 2_800 },
  members: MEMBERS,
};
type Caps = Readonly<typeof CAPS>;
const TOP_ROWS = 3;
/** A line of names is shorter unless one name is longer. */
const DIGEST_LINE_CHARS = 300;
const NAMES_CHARS = 2_800;
const MAX_DETAILS = 7;
/** Rows of a weekly digest. */
const MAX_ROWS = 24;
const DETAIL_CHARS = 300;

/**
 * A piece of a line. Labels and `own` texts are Longwatch's words. `code` is copied or quoted as it is. All others may
 * quote hostile text: they are harmless lines, but still have to be escaped for the receiver's markup.
 */
interface Run {
  readonly as: "label" | "text" | "code" | "own" | "link";
  readonly text: string;
  /** The address of a link. */
  readonly href?: string;
  /** The columns of the text, for a receiver that draws tables. */
  readonly cells?: readonly string[];
}

export type Line = readonly Run[];

/** Lines that belong together; at least one. */
export interface Block {
  readonly name: Exclude<keyof Caps, "title"> | "curve" | "digest";
  /** Longwatch's words; empty for a block without a heading. */
  readonly heading: string;
  readonly lines: readonly Line[];
  /** Maximum length of a written line in code points; of the whole block for advice. */
  readonly cap: number;
}

export interface SafeLink {
  readonly title: string;
  /** Normalised, ASCII, without `<`, `>`, `|`, quotes or spaces. */
  readonly href: string;
}

export interface Document extends Head {
  /** In the order in which a person should read them. */
  readonly blocks: readonly Block[];
  /** The members of a group; null for a message about one rule. */
  readonly members: MembersOutline | null;
  readonly links: readonly SafeLink[];
}

/** A message whose text is that of the operator's template. */
export interface WrittenMessage extends AlertMessage {
  readonly lines?: readonly Line[];
}

/** The length of a piece of a template's line once it is escaped. */
const TEMPLATE_CHARS = 2_000;

const toTexts = (texts: readonly string[]): Line[] => texts.map((text) => [{ as: "text", text }]);

const toOwn = (texts: readonly string[]): Line[] => texts.map((text) => [{ as: "own", text }]);

const toRows = (rows: readonly OutlineRow[]): Line[] =>
  rows.map(({ label, text, isCode = false }) => [
    { as: "label", text: label },
    { as: isCode ? "code" : "text", text },
  ]);

function toTop({ top }: AlertMessage, key: keyof AlertMessage["top"], cap: number): Line[] {
  return top[key].slice(0, TOP_ROWS).map((row) => {
    const [count, share] = [formatNumber(row.count), formatShare(row.share)];
    return [
      { as: "code", text: describeTopValue(key, row.value, cap - 2) },
      { as: "own", text: ` ${count} (${share})`, cells: [count, share] },
    ];
  });
}

/**
 * Returns a message as a document. `transition` is for channels that add a message each time, and has only the new
 * facts: the end of a resolved alert, or the text of advice. `whole` is for channels that edit one message in place,
 * and has all facts.
 */
export function toDocument(
  message: WrittenMessage,
  view: "transition" | "whole",
  own: Partial<Caps> = {},
): Document {
  const caps = { ...CAPS, ...own };
  const { head, isShort, facts, details, advice } = describeAlert(message, view, caps);
  const { verdict, commands } = outlineOpen(message, head.status === "firing", caps.verdict);
  const group = { isShort, room: caps.members, lineChars: DIGEST_LINE_CHARS };
  const { members, digest } = outlineGroup(message, group);
  const links = toSafeLinks(message.links);
  const shown = details.slice(0, message.kind === "weekly" ? MAX_ROWS : MAX_DETAILS);
  const block = (name: Block["name"], lines: readonly Line[], cap: number, heading = ""): Block => {
    return { name, heading, lines: lines.filter((line) => line.at(-1)?.text !== ""), cap };
  };
  const linkLines: Line[] = links.map(({ title, href }) => [{ as: "link", text: title, href }]);
  if (message.lines !== undefined) {
    const written = [block("headline", message.lines, TEMPLATE_CHARS), block("links", linkLines, caps.links)];
    return { ...head, blocks: written.filter(({ lines }) => lines.length > 0), members: null, links };
  }
  const blocks = [
    block("verdict", toRows(verdict), caps.verdict),
    block("headline", toTexts([head.headline]), caps.headline),
    block("curve", [[{ as: "code", text: isShort ? "" : drawSparkline(facts.counts, 60) }]], 100),
    block(
      "facts",
      [...toOwn(facts.lines), ...toTexts(shown.map((text) => toLine(text, DETAIL_CHARS)))],
      caps.facts,
    ),
    block("links", linkLines, caps.links),
    block("commands", toRows(commands), caps.commands),
    block(
      "members",
      members === null ? [] : toTexts([...members.rows, ...members.others, members.more ?? ""]),
      NAMES_CHARS,
      members?.heading,
    ),
    block("digest", toTexts(digest), NAMES_CHARS),
    ...TOP_KEYS.map((key) =>
      block("top", isShort ? [] : toTop(message, key, caps.top), caps.top, TOP_LABELS[key]),
    ),
    block("advice", toTexts(toLines(advice?.text ?? "", caps.advice)), caps.advice.maxChars, advice?.heading),
  ].filter(({ lines }) => lines.length > 0);
  return { ...head, blocks, members, links };
}

const MAX_VALUE_CHARS = 300;
/** A shorter text is cut only at its end, because two short halves would not be readable. */
const LEAST_FOR_HALVES = 24;
const TAIL_SHARE = 0.6;

/** Returns a value that caused events as one harmless line of at most `maxChars` code points. */
export function describeTopValue(key: keyof AlertMessage["top"], value: string, maxChars: number): string {
  const line = toLine(value, MAX_VALUE_CHARS);
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
