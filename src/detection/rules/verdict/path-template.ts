import { cleanText } from "#lib/text.ts";
import { toUrlPart } from "#model/record-parts.ts";

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
  const segments = segmentsOf(url);
  if (segments.length === 0) return "";
  const kept = segments
    .slice(0, MAX_SEGMENTS)
    .map((segment, index) => toPlaceholder(index, segment) ?? cleanText(segment, MAX_SEGMENT_CHARS));
  return `/${kept.join("/")}${segments.length > MAX_SEGMENTS ? "/{...}" : ""}`;
}

/**
 * Returns whether a URL's path has the text of a placeholder as a segment. The template of such a URL means other URLs, too,
 * and nothing in it says so: a visitor writes `/admin/{...}` so that `/admin/*` is proposed.
 */
export function holdsPlaceholder(url: string): boolean {
  return segmentsOf(url).some((segment) => Object.hasOwn(PLACEHOLDERS, segment));
}

/** Returns the segments that a template is made of, and one more if there are more. Empty for an empty URL. */
function segmentsOf(url: string): string[] {
  const path = toUrlPart("path", url.slice(0, MAX_URL_CHARS));
  if (path === "") return [];
  return (path.startsWith("/") ? path.slice(1) : path).split("/", MAX_SEGMENTS + 1);
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

/** Returns a function that does what `templateOf` does, and replaces slugs as well, which are inferred from `urls`. */
export function templatesOf(urls: Iterable<string>): (url: string) => string {
  const templates = new Set<string>();
  for (const url of urls) if (templates.size < MAX_TEMPLATES) templates.add(templateOf(url));
  const nameSlugs = inferSlugs(templates);
  return (url) => nameSlugs(templateOf(url));
}

/**
 * Returns a function that replaces the slugs of a template: where more than twelve different literals follow the same
 * prefix in `templates`, those with a hyphen become `{slug}`.
 */
export function inferSlugs(templates: ReadonlySet<string>): (template: string) => string {
  const many = new Set<string>();
  findNames([...templates].slice(0, MAX_TEMPLATES).map(toSegments), 0, "", many);
  return (template) => {
    if (many.size === 0 || template === "") return template;
    return toSegments(template).reduce((prefix, segment) => `${prefix}/${nameAt(many, prefix, segment)}`, "");
  };
}

/** Adds the prefixes in `paths` that too many literals follow to `many`. All paths have the prefix and a segment at `at`. */
function findNames(paths: readonly (readonly string[])[], at: number, prefix: string, many: Set<string>) {
  if (paths.length <= MAX_NAMES) return;
  const names = new Set(paths.map((segments) => segments[at] ?? ""));
  const literals = names.size - Object.keys(PLACEHOLDERS).filter((name) => names.has(name)).length;
  if (at > 0 && literals > MAX_NAMES) many.add(prefix);
  const longer = paths.filter(({ length }) => length > at + 1);
  for (const [name, group] of Map.groupBy(longer, (path) => nameAt(many, prefix, path[at] ?? "")))
    findNames(group, at + 1, `${prefix}/${name}`, many);
}

function nameAt(many: ReadonlySet<string>, prefix: string, segment: string): string {
  return segment.includes("-") && many.has(prefix) ? "{slug}" : segment;
}

function toSegments(template: string): string[] {
  return template.split("/").slice(1);
}
