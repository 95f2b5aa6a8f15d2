import { createHash, randomBytes } from "node:crypto";
import { createSecret, type Secret } from "#lib/secret.ts";

/** 256 random bits in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export interface NewToken {
  readonly token: Secret;
  readonly hash: Buffer;
}

/** Returns a token for a link that signs in once. Only the hash is stored. */
export function createToken(): NewToken {
  const token = randomBytes(32).toString("base64url");
  return { token: createSecret(token), hash: hash(token) };
}

/** The two secrets of a session. Both are needed. */
export interface SessionTokens {
  /** Sent in the cookie. A browser also sends the cookie to every other port of the host. */
  readonly cookie: Secret;
  /** Kept by the page, where no other port can read it, and sent in a header. */
  readonly page: Secret;
}

export function createSessionTokens(): { readonly tokens: SessionTokens; readonly hash: Buffer } {
  const tokens = { cookie: createToken().token, page: createToken().token };
  return { tokens, hash: hash(joinTokens(tokens)) };
}

/** Returns the hash of both secrets; null for texts that cannot be such secrets. */
export function hashSessionTokens(tokens: SessionTokens): Buffer | null {
  const isToken = (secret: Secret) => TOKEN.test(secret.reveal());
  return isToken(tokens.cookie) && isToken(tokens.page) ? hash(joinTokens(tokens)) : null;
}

function joinTokens({ cookie, page }: SessionTokens): string {
  return `${cookie.reveal()}.${page.reveal()}`;
}

/** Returns the hash of a token; null for a text that cannot be a token. */
export function hashToken(token: string): Buffer | null {
  return TOKEN.test(token) ? hash(token) : null;
}

function hash(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
