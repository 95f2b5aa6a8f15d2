import { escapeLines } from "#lib/text.ts";
import { type EdgeIo, writeOut } from "./edge-io.ts";

/** Writes the bytes unchanged into a pipe or a file. On a terminal, control characters are escaped. */
export async function writeText(
  out: EdgeIo["stdout"],
  chunks: AsyncIterable<Buffer | string> | Iterable<string>,
): Promise<void> {
  if (out.isTTY !== true) {
    for await (const chunk of chunks) await writeOut(out, chunk);
    return;
  }
  const decoder = new TextDecoder();
  for await (const chunk of chunks) {
    const text = typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    await writeOut(out, escapeLines(text));
  }
  await writeOut(out, escapeLines(decoder.decode()));
}
