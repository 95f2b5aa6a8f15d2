import type { FileHash } from "#lib/hash-file.ts";

/** Returns how a file differs from what was archived, or null. */
export function describeDifference(expected: FileHash, { sha256, bytes }: FileHash): string | null {
  if (bytes !== expected.bytes) return `has ${bytes} bytes instead of ${expected.bytes}`;
  return sha256 === expected.sha256 ? null : `has another SHA-256: ${sha256}`;
}
