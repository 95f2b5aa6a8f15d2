/** Headers of every answer. Only the console's page may load anything; nothing may be framed or sniffed. */
export const SECURITY_HEADERS = {
  "content-security-policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

/** A header of answers that went through TLS: for a year the browser asks this host through TLS only. */
export const TLS_HEADERS = { "strict-transport-security": "max-age=31536000" } as const;
