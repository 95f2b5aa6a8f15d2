import { createHmac, hkdfSync } from "node:crypto";
import type { Secret } from "#lib/secret.ts";

/** The purpose of a keyed hash. The same text has different hashes for different purposes. */
type Purpose = "address" | "network" | "tombstone" | "masked" | "content" | "fingerprint";

/** The key of pseudonyms and tombstones. Without the key neither can be traced to an address. */
export interface PseudonymKey {
  /** Identifies the key and reveals nothing about it. */
  readonly id: string;
  hash(purpose: Purpose, text: string | Buffer): Buffer;
}

const ID_CHARS = 16;

export function createPseudonymKey(secret: Secret): PseudonymKey {
  const key = Buffer.from(hkdfSync("sha256", secret.reveal(), "", "longwatch personal data", 32));
  const hash = (purpose: Purpose, text: string | Buffer) =>
    createHmac("sha256", key).update(`${purpose}\0`).update(text).digest();
  return { id: hash("fingerprint", "").toString("hex").slice(0, ID_CHARS), hash };
}
