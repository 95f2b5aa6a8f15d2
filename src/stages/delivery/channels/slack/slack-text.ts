import { joinWithin, toLine, toLines } from "#lib/text.ts";

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
/** Formatting characters of mrkdwn, replaced by characters that look alike and have no meaning. */
const LOOKALIKES: Readonly<Record<string, string>> = { "*": "∗", _: "ˍ", "~": "∼", "`": "ˋ" };
const PLAIN_LOOKALIKES: Readonly<Record<string, string>> = { "&": "＆", "<": "‹", ">": "›" };
/** Prevents Slack from interpreting `@channel`, `#general` and `:smile:`. */
const MENTIONS = /([@#])(?=[\p{L}\p{N}_])|:(?=[\w+-]+:)/gu;

/** Escapes hostile text for a plain_text object, which formats nothing but may decode entities. No entity is left. */
export function toSlackPlain(text: string, maxChars: number): string {
  const pieces = Array.from(toLine(text, maxChars), (character) => PLAIN_LOOKALIKES[character] ?? character);
  return joinWithin(pieces, maxChars);
}

function escapeProse(line: string): string[] {
  const unmentioned = line.replace(MENTIONS, (mark) => `${mark}\u2060`);
  return Array.from(unmentioned, (character) => ENTITIES[character] ?? LOOKALIKES[character] ?? character);
}

/**
 * Escapes hostile prose for a mrkdwn text: one line that cannot format, link or mention, of at most `maxChars` code
 * points.
 */
export function toMrkdwn(text: string, maxChars: number): string {
  return joinWithin(escapeProse(toLine(text, maxChars)), maxChars);
}

/** Escapes hostile text and quotes it line by line. */
export function toMrkdwnQuote(text: string, limits: { maxLines: number; maxChars: number }): string {
  const lines = toLines(text, limits);
  const pieces = lines.flatMap((line, index) => [...(index === 0 ? [] : ["\n"]), "> ", ...escapeProse(line)]);
  return joinWithin(pieces, limits.maxChars);
}

/** Escapes a hostile value for a code span. Only the backtick, which would end the span, is replaced. */
export function toMrkdwnCode(text: string, maxChars: number): string {
  const line = toLine(text, maxChars);
  const pieces = Array.from(line === "" ? "-" : line, (character) => {
    return character === "`" ? "ˋ" : (ENTITIES[character] ?? character);
  });
  return `\`${joinWithin(pieces, maxChars - 2)}\``;
}
