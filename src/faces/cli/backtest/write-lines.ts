import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Writes the lines to a file, which appears only when it is complete. */
export async function writeLines(path: string, lines: Iterable<string>): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    await pipeline(Readable.from(lines), createWriteStream(unfinished, { flags: "wx" }));
    await rename(unfinished, path);
  } catch (cause) {
    await rm(unfinished, { force: true });
    throw cause;
  }
}

/** Returns the text as a cell of a CSV file. */
export function toCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
