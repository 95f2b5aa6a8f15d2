import { BackfillError } from "./backfill-error.ts";

/** A record that does not end is no CSV; without a bound it would be held in memory as a whole. */
const MAX_RECORD_CHARS = 1_048_576;

export interface CsvRecord {
  readonly cells: readonly string[];
  /** As it stands in the file, without its line end. */
  readonly text: string;
}

/**
 * The records of a CSV file (RFC 4180; LF alone ends a line too, a byte order mark is skipped), an empty line is none.
 * @throws {BackfillError} when it ends inside quotes, or a record does not end.
 */
export async function* readCsv(chunks: AsyncIterable<Buffer>): AsyncGenerator<CsvRecord, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  // How much of `rest` is known to hold no end of a record, and whether that much ends within quotes.
  let seen = 0;
  let isQuoted = false;
  async function* pieces() {
    for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true });
    yield `${decoder.decode()}\n`;
  }
  for await (const piece of pieces()) {
    rest += piece;
    let start = 0;
    for (; seen < rest.length; seen++) {
      const character = rest.charCodeAt(seen);
      if (character === QUOTE) isQuoted = !isQuoted;
      if (character !== LINE_FEED || isQuoted) continue;
      const text = rest.slice(start, rest.charCodeAt(seen - 1) === CARRIAGE_RETURN ? seen - 1 : seen);
      start = seen + 1;
      if (text !== "") yield { cells: splitRecord(text), text };
    }
    rest = rest.slice(start);
    seen -= start;
    if (rest.length > MAX_RECORD_CHARS)
      throw new BackfillError("BACKFILL_CSV", "a record of the CSV file does not end");
  }
  if (rest !== "") throw new BackfillError("BACKFILL_CSV", "the CSV file ends in the middle of a record");
}

const QUOTE = 34;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

export function splitRecord(text: string): string[] {
  if (!text.includes('"')) return text.split(",");
  const cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"') {
      const isDoubled = isQuoted && text.charAt(at + 1) === '"';
      if (isDoubled) {
        cell += '"';
        at++;
      } else isQuoted = !isQuoted;
    } else if (character === "," && !isQuoted) {
      cells.push(cell);
      cell = "";
    } else cell += character;
  }
  cells.push(cell);
  return cells;
}
