import { createHash, randomBytes } from "node:crypto";
import { createSecret, type Secret } from "../lib/secret.ts";

/** 256 random bits in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export interface NewToken {
  readonly token: Secret;
  readonly hash: Buffer;
}

/** Returns a token for a session's cookie or for a link that signs in once. Only the hash is stored. */
export function createToken(): NewToken {
  const token = randomBytes(32).toString("base64url");
  return { token: createSecret(token), hash: hash(token) };
}

/** Returns the hash of a token, or null for text that cannot be one. */
export function hashToken(token: string): Buffer | null {
  return TOKEN.test(token) ? hash(token) : null;
}

function hash(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
