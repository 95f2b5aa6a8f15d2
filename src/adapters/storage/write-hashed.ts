import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { FileHash } from "#lib/hash-file.ts";

/** Writes a new file that lasts, makes its folder, and returns hash and size of what was written. */
export async function writeHashed(content: Readable, file: string): Promise<FileHash> {
  const hash = createHash("sha256");
  let bytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  await mkdir(path.dirname(file), { recursive: true });
  await pipeline(content, meter, createWriteStream(file, { flags: "wx", mode: 0o600, flush: true }));
  return { sha256: hash.digest("hex"), bytes };
}
