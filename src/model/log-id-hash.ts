import { hash } from "node:crypto";

const LOG_ID_HASH_BYTES = 8;

/**
 * Returns eight bytes, as lower-case hex, that tell whether an event was seen before. The hash covers time (epoch ms)
 * and id, because a platform that uses an id twice must not lose a record.
 */
export function hashEventKey({ occurredAt, logId }: { occurredAt: number; logId: string }): string {
  return hash("sha256", `${occurredAt} ${logId}`, "hex").slice(0, 2 * LOG_ID_HASH_BYTES);
}

/** Returns the hashes of many ids one after another, in the format of raw_blocks. */
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

/** Returns the positions of these events in the packed hashes of a block. */
export function findPositions(
  packed: Buffer,
  events: readonly { occurredAt: number; logId: string }[],
): number[] {
  const wanted = new Set(events.map(hashEventKey));
  return unpackLogIdHashes(packed).flatMap((hash, position) => (wanted.has(hash) ? [position] : []));
}
