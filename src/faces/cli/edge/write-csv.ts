import { escapeText } from "#lib/escape-text.ts";
import { type EdgeIo, writeOut } from "./edge-io.ts";

function escapeLines(text: string): string {
  return text.replace(/[^\r\n\t]+/g, escapeText);
}

/** Writes the bytes unchanged into a pipe or a file. On a terminal, control characters are escaped. */
export async function writeCsv(out: EdgeIo["stdout"], chunks: AsyncIterable<Buffer>): Promise<void> {
  if (out.isTTY !== true) {
    for await (const chunk of chunks) await writeOut(out, chunk);
    return;
  }
  const decoder = new TextDecoder();
  for await (const chunk of chunks) await writeOut(out, escapeLines(decoder.decode(chunk, { stream: true })));
  await writeOut(out, escapeLines(decoder.decode()));
}
