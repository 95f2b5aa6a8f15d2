import { HOSTILE, PATHS, PAYLOADS } from "./payloads.ts";
import type { Family } from "./rules.ts";

interface UrlParts {
  readonly zoneId: number;
  readonly host: number;
  readonly family: Family;
  readonly path: number;
  readonly payload: number;
  readonly variant: number;
  /** Position in the hostile texts, appended raw; -1 for none. */
  readonly hostile: number;
}

const HOSTS = ["www", "shop", "api"];
const PARAMETERS = ["q", "id", "file", "redirect"];

export type UrlBook = ReturnType<typeof createUrlBook>;

function writeUrl(host: string, parts: UrlParts): string {
  const path = PATHS[parts.family][parts.path] ?? "/";
  const payload = PAYLOADS[parts.family][parts.payload] ?? "";
  const parameter = PARAMETERS[parts.payload % PARAMETERS.length];
  const variant = parts.variant === 0 ? "" : `&v=${parts.variant}`;
  const hostile = parts.hostile < 0 ? "" : `&ref=${HOSTILE[parts.hostile] ?? ""}`;
  if (parts.family === "scanner" || parts.family === "protocol")
    return `https://${host}${path}${variant.replace("&", "?")}${hostile}`;
  return `https://${host}${path}?${parameter}=${encodeURIComponent(payload)}${variant}${hostile}`;
}

/** Returns a cache of URLs, because millions of events share some ten thousand texts. */
export function createUrlBook() {
  const written = new Map<string, { host: string; url: string }>();
  return {
    urlOf(parts: UrlParts): { host: string; url: string } {
      const key = `${parts.zoneId}/${parts.host}/${parts.family}/${parts.path}/${parts.payload}/${parts.variant}/${parts.hostile}`;
      const known = written.get(key);
      if (known !== undefined) return known;
      const host = `${HOSTS[parts.host] ?? "www"}.zone${parts.zoneId}.example.test`;
      const made = { host, url: writeUrl(host, parts) };
      written.set(key, made);
      return made;
    },
  };
}
