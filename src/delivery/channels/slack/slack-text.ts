import { joinWithin, toLine, toLines } from "../../../lib/plain-text.ts";

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
/** Formatting marks of mrkdwn, as characters that look alike and mean nothing. */
const LOOKALIKES: Readonly<Record<string, string>> = { "*": "∗", _: "ˍ", "~": "∼", "`": "ˋ" };
const PLAIN_LOOKALIKES: Readonly<Record<string, string>> = { "&": "＆", "<": "‹", ">": "›" };
/** Keeps `@channel`, `#general` and `:smile:` from being read as what they name. */
const MENTIONS = /([@#])(?=[\p{L}\p{N}_])|:(?=[\w+-]+:)/gu;

/** Hostile text for a plain_text object, which formats nothing but may decode entities: it is left none to decode. */
export function toSlackPlain(text: string, maxChars: number): string {
  const pieces = Array.from(toLine(text, maxChars), (character) => PLAIN_LOOKALIKES[character] ?? character);
  return joinWithin(pieces, maxChars);
}

function escapeProse(line: string): string[] {
  const unmentioned = line.replace(MENTIONS, (mark) => `${mark}\u2060`);
  return Array.from(unmentioned, (character) => ENTITIES[character] ?? LOOKALIKES[character] ?? character);
}

/** Hostile prose for a mrkdwn text: one line that formats, links and mentions nothing; at most `maxChars` code points. */
export function toMrkdwn(text: string, maxChars: number): string {
  return joinWithin(escapeProse(toLine(text, maxChars)), maxChars);
}

/** The same, quoted line by line. */
export function toMrkdwnQuote(text: string, limits: { maxLines: number; maxChars: number }): string {
  const lines = toLines(text, limits);
  const pieces = lines.flatMap((line, index) => [...(index === 0 ? [] : ["\n"]), "> ", ...escapeProse(line)]);
  return joinWithin(pieces, limits.maxChars);
}

/** A hostile value in a code span, where nothing formats; only the backtick, which would end it, is replaced. */
export function toMrkdwnCode(text: string, maxChars: number): string {
  const line = toLine(text, maxChars);
  const pieces = Array.from(line === "" ? "-" : line, (character) => {
    return character === "`" ? "ˋ" : (ENTITIES[character] ?? character);
  });
  return `\`${joinWithin(pieces, maxChars - 2)}\``;
}
