import { DIMENSIONS } from "#model/kinds.ts";
import { escapeControlsInJson } from "./escape-controls.ts";

/** The columns of an exported event, with the platform's names. */
export const EXPORT_NAMES = ["timestamp", "logId", ...DIMENSIONS];
/** The first line of a CSV export. */
export const EXPORT_HEADER = `${EXPORT_NAMES.join(",")}\r\n`;

const LINE_FEED = 0x0a;

/** Yields the header before the lines of a CSV export. */
export async function* withHeader(lines: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  // The first part decides whether there is an answer at all.
  let isFirst = true;
  for await (const chunk of lines) {
    if (isFirst) yield Buffer.from(EXPORT_HEADER);
    isFirst = false;
    yield chunk;
  }
  if (isFirst) yield Buffer.from(EXPORT_HEADER);
}

/** Yields each chunk of lines as text. Each line of the chunks is a JSON array of texts: the columns of an event. */
export function mapExportLines(
  chunks: AsyncIterable<Buffer>,
  toText: (row: readonly string[]) => string,
): AsyncGenerator<string, void, undefined> {
  return mapLines(chunks, (line) => toText(JSON.parse(line) as string[]));
}

/** Yields each chunk of lines as text. `toText` gets a line without its end. */
export async function* mapLines(
  chunks: AsyncIterable<Buffer>,
  toText: (line: string) => string,
): AsyncGenerator<string, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    rest = bytes.subarray(end);
    const lines = bytes.toString("utf8", 0, end).split("\n").slice(0, -1);
    let text = "";
    for (const line of lines) text += toText(line);
    yield text;
  }
}

/** Returns an event as one line of NDJSON. */
export function toNdjsonLine(row: readonly string[]): string {
  const event = Object.fromEntries(EXPORT_NAMES.map((name, index) => [name, row[index] ?? ""]));
  const json = JSON.stringify({ ...event, timestamp: Number(event["timestamp"]) });
  return `${escapeControlsInJson(json)}\n`;
}
