import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";

export interface FileHash {
  /** Lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Reads a file once and returns its hash and size. @throws the error of the file system, or the signal's reason. */
export async function hashFile(file: string, signal?: AbortSignal): Promise<FileHash> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 1_048_576, signal })) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { sha256: hash.digest("hex"), bytes };
}
