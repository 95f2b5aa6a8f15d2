import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** `lw_<id>_<secret>`. The id finds the key and is not secret. A key that a person chose needs 128 bits as well. */
const ACCESS_KEY = /^lw_([a-z0-9]{8,32})_([A-Za-z0-9]{32,128})$/;

export interface NewAccessKey {
  readonly keyId: string;
  readonly key: string;
  readonly hash: Buffer;
}

/** Returns a new key with 192 random bits and an id of 48 bits. */
export function createAccessKey(): NewAccessKey {
  const keyId = randomBytes(6).toString("hex");
  const key = `lw_${keyId}_${randomBytes(24).toString("hex")}`;
  return { keyId, key, hash: hashAccessKey(key) };
}

/** Returns the id in a key; null for a text in another form. */
export function readKeyId(key: string): string | null {
  return ACCESS_KEY.exec(key)?.[1] ?? null;
}

/** Returns the hash of a key. A slow hash is not needed, because 128 random bits cannot be guessed. */
export function hashAccessKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

const NO_KEY = Buffer.alloc(32);

/**
 * Returns whether the key has this hash. Always computes one hash and one comparison of 32 bytes, even without a hash
 * to compare with.
 */
export function isSameKey(given: string, hash: Buffer | null): boolean {
  const isEqual = timingSafeEqual(hashAccessKey(given), hash ?? NO_KEY);
  return isEqual && hash !== null;
}

/** Returns the key in the form that may be shown. */
export function maskAccessKey(keyId: string): string {
  return `lw_${keyId}_********`;
}
