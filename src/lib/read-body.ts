import type { Readable } from "node:stream";

export class BodyTooLargeError extends Error {
  override readonly name = "BodyTooLargeError";
}

/**
 * Returns all bytes of a decoded body. A body longer than `maxBytes` fails, or is cut with `isCut`. The rest is not
 * read in either case, so a decompression bomb costs one chunk.
 */
export async function readBody(body: Readable, maxBytes: number, isCut = false): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      if (!isCut) throw new BodyTooLargeError(`the answer is larger than ${maxBytes} bytes`);
      chunks.push(chunk.subarray(0, chunk.length - (size - maxBytes)));
      break;
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}
