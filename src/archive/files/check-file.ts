import path from "node:path";
import { hashFile } from "../../lib/hash-file.ts";

interface Expected {
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** Compares a file with its hash. Returns what is wrong with it, or null. `folder` is the archive folder. */
export async function checkFile(
  folder: string,
  file: Expected,
  signal?: AbortSignal,
): Promise<string | null> {
  try {
    const { sha256, bytes } = await hashFile(path.join(folder, file.path), signal);
    if (bytes !== file.bytes) return `has ${bytes} bytes instead of ${file.bytes}`;
    return sha256 === file.sha256 ? null : `has another SHA-256: ${sha256}`;
  } catch (thrown) {
    signal?.throwIfAborted();
    const { code } = thrown as NodeJS.ErrnoException;
    return code === "ENOENT" ? "is missing" : `cannot be read: ${code}`;
  }
}
