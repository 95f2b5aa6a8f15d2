import { hash } from "node:crypto";

/** Digest of an empty set of log ids. */
export const NO_IDS = "0".repeat(16);

/**
 * Returns the first eight bytes of the SHA-256 of a log id, as lower-case hex. `readHourContents` computes the same
 * in SQL.
 */
export function hashLogId(logId: string): string {
  return hash("sha256", logId, "hex").slice(0, 16);
}

/**
 * Joins digests of disjoint sets of log ids by exclusive or, so neither order nor grouping matters. An id that is
 * joined twice vanishes, so the caller keeps sets disjoint.
 */
export function joinIdDigests(a: string, b: string): string {
  return (BigInt(`0x${a}`) ^ BigInt(`0x${b}`)).toString(16).padStart(16, "0");
}

/** Returns the digest of a set of log ids. */
export function digestIds(logIds: Iterable<string>): string {
  let [high, low] = [0, 0];
  for (const logId of logIds) {
    const hashed = hashLogId(logId);
    high ^= Number.parseInt(hashed.slice(0, 8), 16);
    low ^= Number.parseInt(hashed.slice(8), 16);
  }
  return toHex(high) + toHex(low);
}

function toHex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}
