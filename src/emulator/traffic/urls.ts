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

interface Written {
  readonly host: string;
  readonly url: string;
}

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
  const zones = new Map<number, Record<Family, Map<number, Written>>>();
  const openZone = (zoneId: number) => {
    const families = Object.keys(PATHS).map((family) => [family, new Map<number, Written>()]);
    const opened = Object.fromEntries(families) as Record<Family, Map<number, Written>>;
    zones.set(zoneId, opened);
    return opened;
  };
  return {
    urlOf(parts: UrlParts): Written {
      const written = (zones.get(parts.zoneId) ?? openZone(parts.zoneId))[parts.family];
      const { host: hostAt, path, payload, variant, hostile } = parts;
      // Each part is below 256. A key of text would cost more than the rest of the event.
      const key = (((hostAt * 256 + path) * 256 + payload) * 256 + variant) * 256 + hostile + 1;
      const known = written.get(key);
      if (known !== undefined) return known;
      const host = `${HOSTS[parts.host] ?? "www"}.zone${parts.zoneId}.example.test`;
      const made = { host, url: writeUrl(host, parts) };
      written.set(key, made);
      return made;
    },
  };
}
