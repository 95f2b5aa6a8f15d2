import { escapeText } from "../../lib/escape-text.ts";
import { type EdgeIo, writeOut } from "./edge-io.ts";

function escapeLines(text: string): string {
  return text.replace(/[^\r\n\t]+/g, escapeText);
}

/** Into a pipe or a file the bytes go as they are; on a terminal their control characters are spelled out. */
export async function writeCsv(out: EdgeIo["stdout"], chunks: AsyncIterable<Buffer>): Promise<void> {
  if (out.isTTY !== true) {
    for await (const chunk of chunks) await writeOut(out, chunk);
    return;
  }
  const decoder = new TextDecoder();
  for await (const chunk of chunks) await writeOut(out, escapeLines(decoder.decode(chunk, { stream: true })));
  await writeOut(out, escapeLines(decoder.decode()));
}
