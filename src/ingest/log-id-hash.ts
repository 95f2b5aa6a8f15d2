import { hash } from "node:crypto";

const LOG_ID_HASH_BYTES = 8;

/** Eight bytes that stand for an event's id where only "seen before or not" is asked, as lower-case hex. */
export function hashLogId(logId: string): string {
  return hash("sha256", logId, "hex").slice(0, 2 * LOG_ID_HASH_BYTES);
}

/** The hashes of many ids behind one another, as raw_blocks keeps them. */
export function packLogIdHashes(hashes: readonly string[]): Buffer {
  return Buffer.from(hashes.join(""), "hex");
}

export function unpackLogIdHashes(packed: Buffer): string[] {
  const hex = packed.toString("hex");
  const width = 2 * LOG_ID_HASH_BYTES;
  return Array.from({ length: hex.length / width }, (_, index) =>
    hex.slice(index * width, (index + 1) * width),
  );
}
