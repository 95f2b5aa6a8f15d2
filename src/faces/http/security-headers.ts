/** Headers of every answer. No answer is a page, so nothing may be loaded, framed, sniffed or cached. */
export const SECURITY_HEADERS = {
  "content-security-policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

/** A header of answers that went through TLS: for a year the browser asks this host through TLS only. */
export const TLS_HEADERS = { "strict-transport-security": "max-age=31536000" } as const;
