/** Credentials: access keys, session tokens and the flow of a sign-in. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { createSecret, type Secret } from "#lib/secret.ts";

/** `lw_<id>_<secret>`. The id finds the key and is not secret. A key that a person chose needs 128 bits as well. */
const ACCESS_KEY = /^lw_([a-z0-9]{8,32})_([A-Za-z0-9]{32,128})$/;

interface NewAccessKey {
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

/** 256 random bits in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

interface NewToken {
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

/** How long a person may take at the issuer. */
export const FLOW_LASTS_MS = 10 * 60_000;
/** A time in base 36, and 256 random bits in base64url. */
const FLOW = /^([0-9a-z]{1,11})\.[A-Za-z0-9_-]{43}$/;

/** Returns a new sign-in. Only a cookie of the browser that starts it keeps its secret. */
export function createFlow(nowMs: number) {
  const secret = `${nowMs.toString(36)}.${randomBytes(32).toString("base64url")}`;
  return { secret: createSecret(secret), ...derive(secret) };
}

/** Returns the values of a sign-in; null if the text is no such secret, or is too old. */
export function readFlow(secret: string, nowMs: number) {
  const startedAt = Number.parseInt(FLOW.exec(secret)?.[1] ?? "", 36);
  // NaN is in no range.
  return Math.abs(nowMs - startedAt) < FLOW_LASTS_MS ? derive(secret) : null;
}

/**
 * The state of the answer, the nonce of the ID token, the verifier of PKCE, and a hash by which a secret opens one session
 * only. The server stores nothing before. A changed time changes the verifier, which the issuer refuses.
 */
function derive(secret: string) {
  const [state, nonce, verifier] = ["state", "nonce", "verifier"].map((name) =>
    createHmac("sha256", secret).update(name).digest("base64url"),
  ) as [string, string, string];
  return { state, nonce, verifier, hash: createHash("sha256").update(secret).digest() };
}
