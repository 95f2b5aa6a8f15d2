import { hash } from "node:crypto";

const LOG_ID_HASH_BYTES = 8;

/**
 * Eight bytes that stand for an event where only "seen before or not" is asked, as lower-case hex. Of its time (epoch ms)
 * and id together, which is what tells events apart: a platform that uses an id twice must not lose a record.
 */
export function hashEventKey({ occurredAt, logId }: { occurredAt: number; logId: string }): string {
  return hash("sha256", `${occurredAt} ${logId}`, "hex").slice(0, 2 * LOG_ID_HASH_BYTES);
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
