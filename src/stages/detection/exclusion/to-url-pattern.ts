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

/** A template ends a long segment with an ellipsis. */
function toSegment(segment: string): string {
  const escape = (text: string) => text.replaceAll(/[\\^$.|?*+()[\]{}]/g, String.raw`\$&`);
  const cut = segment.endsWith("…") ? `${escape(segment.slice(0, -1))}[^/?#]*` : escape(segment);
  return CLASSES.get(segment) ?? cut;
}
