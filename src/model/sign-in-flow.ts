import { createHash, createHmac, randomBytes } from "node:crypto";
import { createSecret } from "#lib/secret.ts";

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
