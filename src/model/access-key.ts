import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** `lw_<id>_<secret>`: the id finds the key and is no secret. A key that somebody made up needs 128 bits as well. */
const ACCESS_KEY = /^lw_([a-z0-9]{8,32})_([A-Za-z0-9]{32,128})$/;

export interface NewAccessKey {
  readonly keyId: string;
  readonly key: string;
  readonly hash: Buffer;
}

/** 192 random bits behind an id of 48. */
export function createAccessKey(): NewAccessKey {
  const keyId = randomBytes(6).toString("hex");
  const key = `lw_${keyId}_${randomBytes(24).toString("hex")}`;
  return { keyId, key, hash: hashAccessKey(key) };
}

/** The id in a key; null for what has not the form of one. */
export function readKeyId(key: string): string | null {
  return ACCESS_KEY.exec(key)?.[1] ?? null;
}

/** No slow hash: there is nothing to guess in what has 128 random bits. */
export function hashAccessKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

const NO_KEY = Buffer.alloc(32);

/** Always one hash and one comparison of 32 bytes, also where there is nothing to compare with. */
export function isSameKey(given: string, hash: Buffer | null): boolean {
  const isEqual = timingSafeEqual(hashAccessKey(given), hash ?? NO_KEY);
  return isEqual && hash !== null;
}

/** As it may be shown. */
export function maskAccessKey(keyId: string): string {
  return `lw_${keyId}_********`;
}
