import { toLine } from "#lib/text.ts";
import { type AlertMessage, MAX_LINKS, MAX_URL_CHARS } from "#model/alert-message.ts";

const TITLE_CHARS = 60;

export interface SafeLink {
  readonly title: string;
  /** Normalised, ASCII, without `<`, `>`, `|`, quotes or spaces. */
  readonly href: string;
}

function toHref(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const parsed = new URL(url);
  const isWeb = parsed.protocol === "https:" || parsed.protocol === "http:";
  const href = parsed.href.replace(/[|'"`<>]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return isWeb && parsed.username === "" && parsed.password === "" && href.length <= MAX_URL_CHARS
    ? href
    : null;
}

/** Returns the message's own links if they are plain web addresses. No other link may be active. */
export function toSafeLinks(links: AlertMessage["links"]): SafeLink[] {
  return links.slice(0, MAX_LINKS).flatMap(({ title, url }) => {
    const href = toHref(url);
    return href === null ? [] : [{ title: toLine(title, TITLE_CHARS) || "link", href }];
  });
}
