/** Text: escaped, shortened, in lines, and compared. */
import { isObject } from "./json.ts";

/**
 * Matches everything that moves a cursor, colours, hides or reorders text: control characters, format characters
 * (bidi, zero width, tags, byte order mark), line and paragraph separators, and halves of a surrogate pair.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Makes text of unknown origin safe for a terminal or a log line: one line, every control character spelled out. */
export function escapeText(text: string): string {
  return text.replace(UNSAFE, escapeCharacter);
}

/** Makes text of several lines safe for a terminal: everything but line breaks and tabs is spelled out. */
export function escapeLines(text: string): string {
  return text.replace(/(?:[^\r\n\t]|\r(?!\n))+/g, escapeText);
}

/** Returns the same text with at most `maxChars` characters, with a mark where it was cut. */
export function shortenText(text: string, maxChars: number): string {
  const escaped = escapeText(text.length > maxChars * 2 ? text.slice(0, maxChars * 2) : text.trim());
  return escaped.length > maxChars ? `${escaped.slice(0, maxChars - 1).replace(/\p{Cs}/gu, "")}…` : escaped;
}

/** Characters that XML 1.0 cannot express, not even as a reference. */
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes a text for XML or HTML: between tags, or in a quoted attribute. */
export function escapeMarkup(text: string): string {
  return text.replace(NOT_XML, "\ufffd").replace(/[&<>"']/g, (mark) => ENTITIES[mark] ?? mark);
}

/** Returns each UTF-16 unit of a text as `\uXXXX`, which JSON reads as the same text. */
export function escapeUnits(text: string): string {
  let escaped = "";
  for (let i = 0; i < text.length; i += 1)
    escaped += `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return escaped;
}

/**
 * Matches everything that moves a cursor, colours, hides or reorders text: controls, format characters (bidi, zero
 * width, tags), halves of surrogate pairs, private-use and unassigned code points, and letters that are blank by
 * definition.
 */
const HOSTILE = /[\p{C}\p{DI}]/gu;
/** Matches the characters that only choose between the black and the coloured form of a sign. */
const EMOJI_STYLE = /[\ufe0e\ufe0f]/g;
/** Matches more than two marks on one letter, which would cover the lines above and below. */
const STACKED_MARKS = /(\p{M}{2})\p{M}+/gu;
/** Text that programs turn into links on their own. */
const LINK_STARTS: readonly (readonly [RegExp, string])[] = [
  [/:\/\//g, "[:]//"],
  [/\bwww\./gi, "www[.]"],
  [/\bmailto:/gi, "mailto[:]"],
];

/** Matches printable ASCII in single spaces: most names and texts, of which nothing but a link has to be disabled. */
const PLAIN = /^(?:[!-~]+(?: [!-~]+)*)?$/;
const ANY_LINK = /:\/\/|www\.|mailto:/i;

/** Matches text of which nothing is seen. U+2800 is a braille letter without a dot. */
const BLANK = /^[\s\p{C}\p{DI}\p{Z}\u2800]*$/u;

/** Returns whether a text is empty, or only white space and invisible characters. */
export function isBlank(text: string): boolean {
  return BLANK.test(text);
}

function spellOut(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Returns at most `maxChars` code points. An ellipsis, which counts, marks a cut. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  // There are no more code points than UTF-16 units, so the text beyond twice the limit does not matter.
  const characters = Array.from(text.slice(0, maxChars * 2 + 2));
  return characters.length <= maxChars ? text : `${characters.slice(0, Math.max(maxChars - 1, 0)).join("")}…`;
}

/** Returns the number of code points. */
export function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Returns hostile text as one harmless line: whitespace collapsed, unsafe characters spelled out, links disabled. */
export function toLine(text: string, maxChars: number): string {
  // Cut generously before the work, because spelling out and collapsing change the length.
  const kept = text.slice(0, maxChars * 8);
  if (PLAIN.test(kept) && !ANY_LINK.test(kept)) return cutText(kept, maxChars);
  const collapsed = kept.replace(/\s+/g, " ").trim();
  const safe = collapsed.replace(EMOJI_STYLE, "").replace(HOSTILE, spellOut).replace(STACKED_MARKS, "$1");
  return cutText(
    LINK_STARTS.reduce((line, [start, dead]) => line.replace(start, dead), safe),
    maxChars,
  );
}

/** Returns a value of JSON whose texts cannot move, colour, hide or reorder anything. Their lines stay. */
export function toPlainTexts<Value>(value: Value): Value {
  if (typeof value === "string") return toPlainText(value) as Value;
  if (Array.isArray(value)) return value.map(toPlainTexts) as Value;
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, one]) => [toPlainText(name), toPlainTexts(one)]);
  return Object.fromEntries(members) as Value;
}

function toPlainText(text: string): string {
  if (PLAIN.test(text)) return text;
  const keepLines = (character: string) => (/[\n\t]/.test(character) ? character : spellOut(character));
  return text.replace(EMOJI_STYLE, "").replace(HOSTILE, keepLines);
}

/** Returns hostile text as harmless lines. Empty lines are dropped, and the last line says if there was more. */
export function toLines(text: string, limits: { maxLines: number; maxChars: number }): string[] {
  const lines = text
    .slice(0, limits.maxChars * 8)
    .split(/[\n\r\u0085\u2028\u2029]+/)
    .map((line) => toLine(line, limits.maxChars))
    .filter((line) => line !== "");
  const shown: string[] = [];
  let left = limits.maxChars;
  for (const line of lines) {
    if (shown.length === limits.maxLines || left <= 0) return [...shown.slice(0, -1), `${shown.at(-1)} …`];
    shown.push(cutText(line, left));
    left -= line.length;
  }
  return shown;
}

/** Joins whole pieces up to `maxChars` code points, because half an entity or escape would be shown as text. */
export function joinWithin(pieces: readonly string[], maxChars: number): string {
  const sizes = pieces.map(countCharacters);
  if (sizes.reduce((sum, size) => sum + size, 0) <= maxChars) return pieces.join("");
  let used = 1;
  const kept = pieces.findIndex((_, index) => (used += sizes[index] ?? 0) > maxChars);
  return `${pieces.slice(0, kept).join("")}…`;
}

/** Returns pieces in their order in as few groups as possible. A group exceeds `most` only if it is a single piece. */
export function packWithin(
  pieces: readonly string[],
  most: number,
  measure: (piece: string) => number,
): string[][] {
  const groups: string[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const piece of pieces) {
    const size = measure(piece);
    if (used + size > most) {
      groups.push([]);
      used = 0;
    }
    groups.at(-1)?.push(piece);
    used += size;
  }
  return groups;
}

/** Longest URL, User-Agent or message in a column. The raw record holds the whole text. */
export const MAX_TEXT_CHARS = 8_192;
/** Longest value of a dimension that is indexed or grouped by. */
export const MAX_DIMENSION_CHARS = 200;

const CUT = "…";

/**
 * Returns attack text that can be stored and is otherwise unchanged: NUL and lone surrogates become U+FFFD, and text
 * longer than `maxChars` ends in an ellipsis. Two results that differ also differ in the database, so a key made of
 * one is a key there.
 */
export function cleanText(text: string, maxChars: number): string {
  const withoutNul = text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
  const whole = withoutNul.toWellFormed();
  if (whole.length <= maxChars) return whole;
  const cut = whole.slice(0, maxChars - CUT.length);
  return `${isHighSurrogate(cut.charCodeAt(cut.length - 1)) ? cut.slice(0, -1) : cut}${CUT}`;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** The length from which on V8 makes a part of a text a reference to the whole. */
const REFERENCE_CHARS = 13;

/** Returns a text that does not keep in memory the larger text of which it is a part. */
export function ownText(text: string): string {
  return text.length < REFERENCE_CHARS ? text : Buffer.from(text).toString();
}

/** One typing error is allowed per this number of letters. */
const LETTERS_PER_EDIT = 6;
/** Names of this length or longer may always have one typing error. */
const ENOUGH_LETTERS = 4;

/**
 * Returns the known name that a person probably meant: one that begins with the text, the nearest one, one that the
 * text begins with, or null.
 */
export function closestName(typed: string, known: readonly string[]): string | null {
  const forgiven = typed.length < ENOUGH_LETTERS ? 0 : Math.max(1, typed.length / LETTERS_PER_EDIT);
  const nearest = known
    .map((name) => ({ name, edits: countEdits(typed, name) }))
    .filter(({ edits }) => edits <= forgiven)
    .sort((a, b) => a.edits - b.edits)[0]?.name;
  const unfinished = known.find((name) => name.startsWith(typed));
  return unfinished ?? nearest ?? known.find((name) => typed.startsWith(`${name}_`)) ?? null;
}

/** Counts the letters to add, drop or exchange (Levenshtein), one row of the table at a time. */
function countEdits(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [row, letter] of Array.from(from).entries()) {
    const current = [row + 1];
    for (const [column, other] of Array.from(to).entries()) {
      const exchanged = (above[column] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(exchanged, (above[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    above = current;
  }
  return above[to.length] ?? 0;
}

/** Returns JSON in ASCII. */
export function toJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[^\x20-\x7e]/g, toEscape);
}

/** Matches the beginning of a formula in a spreadsheet, or what it skips before one, with full-width forms and line feeds. */
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/** Returns a cell that a spreadsheet shows as text: an apostrophe stands before a formula. */
export function quoteFormula(cell: string): string {
  return FORMULA.test(cell) ? `'${cell}` : cell;
}

/** Returns a text as one word of a shell. */
export function toShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Returns a text as a string of HCL in ASCII. A `{` behind `$` or `%` would begin an expression. */
export function toHcl(text: string): string {
  const unsafe = /["\\]|[$%](?=\{)|[^\x20-\x7e]/gu;
  return `"${text.toWellFormed().replaceAll(unsafe, toEscape)}"`;
}

function toEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff
    ? `\\U${code.toString(16).padStart(8, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}
