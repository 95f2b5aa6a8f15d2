import { isObject } from "./is-object.ts";

/**
 * Matches everything that moves a cursor, colours, hides or reorders text: controls, format characters (bidi, zero
 * width, tags), halves of surrogate pairs, private-use and unassigned code points, and letters that are blank by
 * definition.
 */
const UNSAFE = /[\p{C}\p{DI}]/gu;
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
  const safe = collapsed.replace(EMOJI_STYLE, "").replace(UNSAFE, spellOut).replace(STACKED_MARKS, "$1");
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
  return text.replace(EMOJI_STYLE, "").replace(UNSAFE, keepLines);
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
