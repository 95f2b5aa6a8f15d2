import { joinWithin, toLine } from "../../../lib/plain-text.ts";

/** Every sign that Discord's Markdown, mentions, emoji or masked links are made of: shown as it is behind a backslash. */
const MARKS = /[\\*_~|>#[\]()<@:+-]/;
/** Looks like a backtick, which no backslash keeps from ending a code span. */
const BACKTICK = "ˋ";

function escapeLine(line: string): string[] {
  return Array.from(line, (character) => {
    return character === "`" ? BACKTICK : MARKS.test(character) ? `\\${character}` : character;
  });
}

/** Hostile text that formats, links and mentions nothing; at most `maxChars` code points, no escape cut in half. */
export function toDiscord(text: string, maxChars: number): string {
  return joinWithin(escapeLine(toLine(text, maxChars)), maxChars);
}

/** The same, quoted line by line. */
export function toDiscordQuote(lines: readonly string[], maxChars: number): string {
  const pieces = lines.flatMap((line, index) => [...(index === 0 ? [] : ["\n"]), "> ", ...escapeLine(line)]);
  return joinWithin(pieces, maxChars);
}

/** A hostile value in a code span, where only the backtick means something. */
export function toDiscordCode(text: string, maxChars: number): string {
  return `\`${toLine(text.replaceAll("`", BACKTICK), maxChars - 2) || "-"}\``;
}
