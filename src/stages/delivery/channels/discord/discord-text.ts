import { joinWithin, toLine } from "#lib/text.ts";

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
