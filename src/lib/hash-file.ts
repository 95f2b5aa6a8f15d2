import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";

export interface FileHash {
  /** Lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Reads a file once and returns its hash and size. @throws the error of the file system, or the signal's reason. */
export function hashFile(file: string, signal?: AbortSignal): Promise<FileHash> {
  return hashContent(createReadStream(file, { highWaterMark: 1_048_576, signal }));
}

/** Reads a stream to its end and returns its hash and size. @throws the stream's error. */
export async function hashContent(content: Readable): Promise<FileHash> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of content) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { sha256: hash.digest("hex"), bytes };
}
