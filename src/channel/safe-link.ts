import type { AlertMessage } from "./alert-message.ts";
import { toLine } from "./plain-text.ts";

const MAX_LINKS = 5;
const MAX_URL_CHARS = 500;

export interface SafeLink {
  readonly label: string;
  /** Normalised, ASCII, without `<`, `>`, `|`, quotes or spaces. */
  readonly href: string;
}

function toHref(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const parsed = new URL(url);
  const isWeb = parsed.protocol === "https:" || parsed.protocol === "http:";
  const href = parsed.href.replace(/[|'"`<>*_~]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return isWeb && parsed.username === "" && parsed.password === "" && href.length <= MAX_URL_CHARS
    ? href
    : null;
}

/** The message's own links, the only ones that may be live, as far as they are plain web addresses. */
export function toSafeLinks(links: AlertMessage["links"]): SafeLink[] {
  return links.slice(0, MAX_LINKS).flatMap(({ label, url }) => {
    const href = toHref(url);
    return href === null ? [] : [{ label: toLine(label, 60) || "link", href }];
  });
}
