import { PLACEHOLDERS } from "../verdict/path-template.ts";

const CLASSES = new Map<string, string>(Object.entries(PLACEHOLDERS));

/**
 * Returns a regular expression for the URLs of a path template. RE2, Postgres and JavaScript read it alike: it is made of
 * escaped literals and of the classes of placeholders only. It finds every URL of the template, and few others: `{hex}` also
 * finds eight letters without a digit.
 */
export function toUrlPattern(template: string): string {
  const path = template.split("/").map(toSegment).join("/");
  return `^([^/?#]+://[^/?#]*)?${path === "/" ? "/?" : path}([?#]|$)`;
}

/** The scheme and the host of a URL whose host is a name or an address. Nothing in it is a wildcard of the platform. */
export const ORIGIN_PATTERN = "^https?://[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*(:[0-9]+)?";

/**
 * Returns a template as the platform writes a path: with a `*` for each placeholder. Null if no such path means the
 * template: if no segment is fixed, if one was cut, or if one holds a `*` of a visitor.
 */
export function toWrittenPath(template: string | null): string | null {
  if (template === null) return null;
  const segments = template.split("/");
  const isFixed = (segment: string, at: number) => segment !== "" && !isPlaceholder(segment, at);
  if (/[*…]/.test(template) || !segments.some(isFixed)) return null;
  return segments.map((segment, at) => (isPlaceholder(segment, at) ? "*" : segment)).join("/");
}

/** Returns a regular expression for the URLs that a written path finds behind any origin. A `*` is any text, with slashes. */
export function toWrittenPattern(path: string): string {
  return String.raw`${ORIGIN_PATTERN}${path.split("*").map(escape).join(String.raw`(.|\n)*`)}([?#](.|\n)*)?$`;
}

/** A template leaves the first segment as it is: there, the text of a placeholder is a visitor's. */
function isPlaceholder(segment: string, at: number): boolean {
  return at > 1 && CLASSES.has(segment);
}

/** A template ends a long segment with an ellipsis. */
function toSegment(segment: string, at: number): string {
  if (isPlaceholder(segment, at)) return CLASSES.get(segment) ?? "";
  return segment.endsWith("…") ? `${escape(segment.slice(0, -1))}[^/?#]*` : escape(segment);
}

function escape(text: string): string {
  return text.replaceAll(/[\\^$.|?*+()[\]{}]/g, String.raw`\$&`);
}
