import { randomBytes } from "node:crypto";

/** Placeholder that `vite.config.ts` writes instead of a nonce. */
const NONCE_PLACE = "__CSP_NONCE__";

/**
 * Returns the content policy. Scripts come from this origin only, and no text becomes markup or a script. Styles that
 * the page writes itself carry the nonce of this answer.
 */
function contentPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types default",
  ].join("; ");
}

/** Returns the page with a new nonce, and its headers. */
export function dressPage(html: string): {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
} {
  const nonce = randomBytes(16).toString("base64url");
  return {
    body: html.replaceAll(NONCE_PLACE, nonce),
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": contentPolicy(nonce),
      "cross-origin-opener-policy": "same-origin",
      "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
      vary: "accept",
    },
  };
}
