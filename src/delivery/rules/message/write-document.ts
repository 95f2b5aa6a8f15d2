/** Writes a document in the dialect of a receiver or as plain text, and as much of it as fits. */

import { countCharacters, cutText, escapeMarkup, joinWithin, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { NOTICED } from "#model/words.ts";
import type { Block, Document, Line } from "./document.ts";

/** Looks like a backtick. No backslash prevents a real backtick from ending a code span. */
export const BACKTICK = "ˋ";

/** Similar characters without a meaning, for those that later programs may read as markup or a mention. */
const LOOKALIKES: Readonly<Record<string, string>> = { "<": "‹", ">": "›", "&": "＆", "`": BACKTICK };

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
  return text.replaceAll("`", BACKTICK).replace(MENTION, "@\u2060");
}

/** Writes a hostile value as a code span of Markdown, in which only the backtick has a meaning. */
export function toCodeSpan(text: string, maxChars: number): string {
  return `\`${toLine(text.replaceAll("`", BACKTICK), maxChars - 2) || "-"}\``;
}

/** Prevents programs from turning `a@b`, `@all` or `evil.example` into a link. A full stop before a digit stays, because addresses are copied. */
export function breakLinks(text: string): string {
  return text.replace(/@(?=[\p{L}\p{N}_])|\.(?=\p{L})/gu, (mark) => `${mark}\u2060`);
}

const TAG_MARKS: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** Escapes text between the tags of a chat that knows these three entities only. */
export function escapeTags(text: string): string {
  return text.replace(/[&<>]/g, (mark) => TAG_MARKS[mark] ?? mark);
}

/** Returns what stands for a character in a receiver's markup. */
type Escape = (character: string) => string;

/** Returns a harmless line escaped, of at most `maxChars` code points. No escape is cut in half. */
export function escapeWithin(line: string, maxChars: number, escape: Escape): string {
  return joinWithin(Array.from(line, escape), maxChars);
}

/** Returns harmless lines as an escaped quotation of at most `maxChars` code points. */
export function quoteWithin(lines: readonly string[], maxChars: number, escape: Escape): string {
  const pieces = lines.flatMap((line, index) => [
    ...(index === 0 ? [] : ["\n"]),
    "> ",
    ...Array.from(line, escape),
  ]);
  return joinWithin(pieces, maxChars);
}

/** The markup of a receiver for the pieces of a line. `cap` is the maximum length of the result in code points. */
export type Dialect<Written = string> = Readonly<
  Record<Line[number]["as"], (text: string, cap: number, href: string) => Written>
>;

/** Returns the lines of a block, each as its written pieces. */
function writeLines<Written>({ name, lines, cap }: Block, dialect: Dialect<Written>): Written[][] {
  return lines.map((line) =>
    line.map(({ as, text, href = "" }) => {
      const write = (shown: string) => dialect[as](shown, cap, href);
      return name === "commands" && as === "code" ? writeCommand(text, write) : write(text);
    }),
  );
}

/**
 * Writes a command so that it can be copied. Where `write` would hide a sign after `@` or a full stop, which a shell would read,
 * quotes stand around these instead: no program makes a link of that, and a shell drops the quotes.
 */
function writeCommand<Written>(text: string, write: (text: string) => Written): Written {
  const written = write(text);
  return typeof written === "string" && written.includes("\u2060")
    ? write(text.replace(/[@.](?=\w)/g, "'$&'"))
    : written;
}

const SUMMARY: readonly string[] = ["headline", "curve", "facts"];

/** A block with its lines in a dialect, each line as its written pieces. */
export interface WrittenBlock<Written = string> extends Block {
  readonly written: readonly (readonly Written[])[];
}

/** Returns the written blocks of a document by paragraph. */
function writeParagraphs<Written>(
  document: Pick<Document, "blocks">,
  dialect: Dialect<Written>,
): WrittenBlock<Written>[][] {
  const write = (block: Block) => ({ ...block, written: writeLines(block, dialect) });
  return toParagraphs(document).map((blocks) => blocks.map(write));
}

/** Returns the blocks of a document by paragraph: the top lists are one, and so is what an alert counts. */
export function toParagraphs({ blocks }: Pick<Document, "blocks">): Block[][] {
  return [...Map.groupBy(blocks, ({ name }) => (SUMMARY.includes(name) ? "summary" : name)).values()];
}

function createPlainDialect(escape: (text: string) => string): Dialect {
  return {
    label: (text) => `${escape(text)}: `,
    text: escape,
    code: escape,
    own: escape,
    link: (text, _, href) => `${escape(text)}: ${href}`,
  };
}

const PLAIN = createPlainDialect((text) => text);

/** Returns the lines of a block as plain text, without its heading. */
export function toPlain(block: Block, escape = (text: string) => text): string[] {
  return writeLines(block, createPlainDialect(escape)).map((pieces) => pieces.join(""));
}

/** Returns the lines of the blocks of this name as plain text. */
export function toPlainOf(
  { blocks }: Document,
  wanted: Block["name"],
  escape?: (text: string) => string,
): string[] {
  return blocks.flatMap((block) => (block.name === wanted ? toPlain(block, escape) : []));
}

/** Returns the commands with their labels in lower case. */
export function toCommands(
  { blocks }: Document,
  escape: (text: string) => string,
): (readonly [label: string, text: string])[] {
  const lines = blocks.flatMap((block) => (block.name === "commands" ? block.lines : []));
  return lines.map(([label, code]) => [
    label?.text.toLowerCase() ?? "",
    writeCommand(code?.text ?? "", escape),
  ]);
}

/** Returns a document as lines of plain text, with an empty line between paragraphs. Its title is left out. */
export function toPlainLines(document: Pick<Document, "blocks">, escape = (text: string) => text): string[] {
  return toParagraphs(document).flatMap((blocks, index) => [
    ...(index === 0 ? [] : [""]),
    ...blocks.flatMap((block) => {
      const { name, heading } = block;
      const lines = toPlain(block, escape);
      if (heading === "") return lines;
      return [`${escape(heading)}${name === "advice" ? "" : ":"}`, ...lines.map((line) => `  ${line}`)];
    }),
  ]);
}

/**
 * Returns a document as plain text that `measure` finds no larger than `most`: shortened by priority, and at last cut at
 * its end. `measure` is one or more for every character.
 */
export function fitPlain(
  document: Document,
  escape: (text: string) => string,
  most: number,
  measure: (text: string) => number,
): string {
  const write = (_: unknown, shown: Document) => toPlainLines(shown, escape).join("\n");
  const text = fit(document, PLAIN, write, (written) => measure(written) - most);
  const excess = measure(text) - most;
  const characters = Array.from(text);
  // The sign of the cut is three bytes.
  return excess <= 0 ? text : `${characters.slice(0, Math.max(characters.length - excess - 3, 0)).join("")}…`;
}

/** Returns a written paragraph as one text. `bold` marks a heading, and `quote` the lines of a recommendation. */
export function joinParagraph(
  blocks: readonly WrittenBlock[],
  bold: (heading: string) => string,
  quote: (lines: readonly string[]) => string,
): string {
  const texts = blocks.flatMap(({ name, heading, written }) => {
    const lines = written.map((pieces) => pieces.join(""));
    const shown = name === "links" ? [lines.join(" · ")] : name === "advice" ? [quote(lines)] : lines;
    return [...(heading === "" ? [] : [bold(heading)]), ...shown];
  });
  return texts.join("\n");
}

/** Prevents mail programs from turning `a@b` into an address. A quote does that as well. */
export function unlink(text: string): string {
  return text.replace(/@(?!')/g, "@\u2060");
}

function escapeHtml(text: string): string {
  return escapeMarkup(unlink(text));
}

const HTML: Dialect = {
  label: (text) => `<b>${escapeHtml(text)}</b>: `,
  own: escapeHtml,
  text: escapeHtml,
  code: (text) => `<code>${escapeHtml(text)}</code>`,
  link: (text, _, href) => `<a href="${href.replaceAll("&", "&amp;")}">${escapeHtml(text)}</a>`,
};

function renderTop(block: Block): string[] {
  return block.lines.map(([value, numbers], index) => {
    const heading = index === 0 ? escapeHtml(block.heading) : "";
    const cells = (numbers?.cells ?? []).map((cell) => `<td align="right">${cell}</td>`);
    return `<tr><td>${heading}</td><td><code>${escapeHtml(value?.text ?? "")}</code></td>${cells.join("")}</tr>`;
  });
}

function renderBlock({ name, heading, written }: WrittenBlock): string {
  const lines = written.map((pieces) => pieces.join(""));
  if (name === "links") return `<p>${lines.join(" · ")}</p>`;
  if (name === "advice") {
    return `<p><b>${escapeHtml(heading)}</b></p>\n<blockquote>${lines.join("<br>\n")}</blockquote>`;
  }
  const above = heading === "" ? [] : [`${escapeHtml(heading)}:`];
  return `<p>${[...above, ...lines].join("<br>\n")}</p>`;
}

/** Returns a document as a page of HTML. `color` is that of its title. */
export function toHtml(document: Document, color: string): string {
  const body = [
    `<h2 style="color:${color}">${escapeHtml(document.statusText)}</h2>`,
    `<p><b>${escapeHtml(document.subject)}</b></p>`,
    ...writeParagraphs(document, HTML).flatMap((blocks) =>
      blocks[0]?.name === "top"
        ? [`<table cellpadding="3">\n${blocks.flatMap(renderTop).join("\n")}\n</table>`]
        : blocks.map(renderBlock),
    ),
  ].join("\n");
  return `<!doctype html>\n<html><body style="font-family:sans-serif">\n${body}\n</body></html>\n`;
}

/** Returns the document without the blocks of these names. */
export function leaveOut(document: Document, ...names: readonly Block["name"][]): Document {
  return { ...document, blocks: document.blocks.filter(({ name }) => !names.includes(name)) };
}

/** The blocks that are shortened, the least important first. The others have limits of their own and stay whole. */
const SHORTENED = ["advice", "top", "facts", "links", "verdict"] as const;
/** A longer text is cut before its line is left out. */
const LEAST_CHARS = 120;

/**
 * Returns a document as `write` makes it of the paragraphs in a dialect, shortened by priority until it fits. `excessOf`
 * returns by how much something written is too large. Texts longer than `LEAST_CHARS` are cut, then lines are left out from the end. Longwatch's own
 * words, values and links are never cut, and no line of the verdict is left out.
 */
export function fit<Piece, Written>(
  document: Document,
  dialect: Dialect<Piece>,
  write: (paragraphs: WrittenBlock<Piece>[][], document: Document) => Written,
  excessOf: (written: Written) => number,
): Written {
  const writeAll = (shown: Document) => ({
    document: shown,
    written: write(writeParagraphs(shown, dialect), shown),
  });
  let fitted = writeAll(document);
  for (const name of SHORTENED) {
    let shorter = fitted;
    for (;;) {
      const excess = excessOf(shorter.written);
      const blocks = excess > 0 ? shorten(shorter.document.blocks, name, excess) : null;
      if (blocks === null) break;
      shorter = writeAll({ ...document, blocks });
    }
    // A block whose space is not the one that is exceeded stays as it is.
    if (excessOf(shorter.written) < excessOf(fitted.written)) fitted = shorter;
  }
  return fitted.written;
}

/** Returns the blocks with the last line of this name cut or left out; null if there is no such line. */
function shorten(blocks: readonly Block[], name: Block["name"], excess: number): readonly Block[] | null {
  const cutLast = (line: Line): Line | null => {
    const run = line.at(-1);
    const chars = run?.as === "text" || run?.as === "code" ? countCharacters(run.text) : 0;
    if (run === undefined || chars <= LEAST_CHARS) return null;
    // A little more than necessary, because the sign of the cut takes space.
    const text = cutText(run.text, Math.max(chars - excess - 10, LEAST_CHARS));
    return [...line.slice(0, -1), { ...run, text }];
  };
  const gives = (line: Line) => cutLast(line) !== null || (name !== "verdict" && line[0]?.as !== "own");
  const block = blocks.findLast((one) => one.name === name && one.lines.some(gives));
  const last = block?.lines.findLast(gives);
  if (block === undefined || last === undefined) return null;
  const lines = block.lines.flatMap((line) => (line === last ? [cutLast(line) ?? []] : [line]));
  const kept = { ...block, lines: lines.filter((line) => line.length > 0) };
  return blocks.map((one) => (one === block ? kept : one)).filter((one) => one.lines.length > 0);
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
