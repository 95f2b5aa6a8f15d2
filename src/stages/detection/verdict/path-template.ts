import { cleanText } from "#lib/clean-text.ts";
import { toUrlPart } from "#model/url-parts.ts";

/** The beginning of a URL that is read. */
const MAX_URL_CHARS = 2_048;
/** Segments of a template. `{...}` stands for the others. */
const MAX_SEGMENTS = 8;
const MAX_SEGMENT_CHARS = 64;
/** So many different literals after the same prefix are still a list of names. */
const MAX_NAMES = 12;
/** Templates that names are inferred from. Hostile URLs have as many as there are URLs. */
const MAX_TEMPLATES = 20_000;

/**
 * The placeholders, with regular expressions for the segments that they replace. Postgres, RE2 and JavaScript read these
 * alike. `{slug}` is only inferred from many URLs, and `{...}` replaces all segments after the eighth.
 */
export const PLACEHOLDERS = {
  "{n}": "[0-9]+",
  "{uuid}": "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
  "{date}": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
  "{hex}": "[0-9a-fA-F]{8,}",
  "{token}": "[A-Za-z0-9_=~-]{10,}",
  "{slug}": "[^/?#]*-[^/?#]*",
  "{...}": "[^?#]*",
} as const;

const whole = (name: keyof typeof PLACEHOLDERS) => new RegExp(`^${PLACEHOLDERS[name]}$`);
const [NUMBER, UUID, DATE, HEX, TOKEN] = [
  whole("{n}"),
  whole("{uuid}"),
  whole("{date}"),
  whole("{hex}"),
  whole("{token}"),
];
const LONG_WORD = /^[A-Za-z0-9_=~]{20,}$/;

/**
 * Returns the template of a URL's path: `/products/{n}/reviews`. Numbers, UUIDs, dates, hexadecimal numbers and tokens become
 * placeholders; the first segment stays as it is. Host, query and fragment are no part of it, and nothing is decoded. The
 * template of a template is the same. Returns '' for an empty URL.
 */
export function templateOf(url: string): string {
  const path = toUrlPart("path", url.slice(0, MAX_URL_CHARS));
  if (path === "") return "";
  const segments = (path.startsWith("/") ? path.slice(1) : path).split("/", MAX_SEGMENTS + 1);
  const kept = segments
    .slice(0, MAX_SEGMENTS)
    .map((segment, index) => toPlaceholder(index, segment) ?? cleanText(segment, MAX_SEGMENT_CHARS));
  return `/${kept.join("/")}${segments.length > MAX_SEGMENTS ? "/{...}" : ""}`;
}

function toPlaceholder(index: number, segment: string): keyof typeof PLACEHOLDERS | null {
  if (index === 0) return null;
  if (NUMBER.test(segment)) return "{n}";
  if (segment.length < 8) return null;
  const hasDigit = /[0-9]/.test(segment);
  if (hasDigit && UUID.test(segment)) return "{uuid}";
  if (DATE.test(segment)) return "{date}";
  if (hasDigit && HEX.test(segment)) return "{hex}";
  if (LONG_WORD.test(segment)) return "{token}";
  return hasDigit && /[A-Z]/.test(segment) && TOKEN.test(segment) ? "{token}" : null;
}

/**
 * Returns a function that does what `templateOf` does, and replaces names as well: where more than twelve different
 * literals follow the same prefix in `urls`, those with a hyphen become `{slug}`. It accepts templates in place of URLs.
 */
export function templatesOf(urls: Iterable<string>): (url: string) => string {
  const templates = new Set<string>();
  for (const url of urls) {
    if (templates.size >= MAX_TEMPLATES) break;
    templates.add(templateOf(url));
  }
  const many = new Set<string>();
  const paths = [...templates].map((template) => ({ prefix: "", segments: template.split("/").slice(1) }));
  for (let at = 0; at < MAX_SEGMENTS; at += 1) {
    const names = new Map<string, Set<string>>();
    for (const { prefix, segments } of paths) {
      const segment = segments[at];
      if (at === 0 || segment === undefined || Object.hasOwn(PLACEHOLDERS, segment)) continue;
      const found = names.get(prefix) ?? new Set();
      names.set(prefix, found);
      if (found.size <= MAX_NAMES) found.add(segment);
    }
    for (const [prefix, { size }] of names) if (size > MAX_NAMES) many.add(prefix);
    for (const path of paths) path.prefix += `/${nameAt(many, path.prefix, path.segments[at] ?? "")}`;
  }
  return (url) => {
    const template = templateOf(url);
    if (many.size === 0 || template === "") return template;
    let prefix = "";
    for (const segment of template.split("/").slice(1)) prefix += `/${nameAt(many, prefix, segment)}`;
    return prefix;
  };
}

function nameAt(many: ReadonlySet<string>, prefix: string, segment: string): string {
  return many.has(prefix) && segment.includes("-") ? "{slug}" : segment;
}
