/** Writes an exclusion in the platform's languages. */
import { toHcl, toJson, toLine, toShell } from "#lib/text.ts";
import type { ExclusionClause } from "#model/advice.ts";
import type { EXCLUSION_TOOLS, ExclusionReach } from "#model/kinds.ts";
import { PLACEHOLDERS } from "../verdict/path-template.ts";

/** A text that a person can use. `reach` is what it silences, which may be more than the clause. */
interface WrittenForm {
  readonly tool: (typeof EXCLUSION_TOOLS)[number];
  readonly reach: ExclusionReach;
  readonly text: string;
}

const MAX_TEXT_CHARS = 300;

/** Returns a clause in words: `rule 942440 for ARGS:title of POST /reviews/{n}`. Its texts come from requests. */
export function describeClause({ ruleIds, template, method, parameter }: ExclusionClause): string {
  const line = (text: string) => toLine(text, MAX_TEXT_CHARS);
  const rules = `${ruleIds.length === 1 ? "rule" : "rules"} ${line(ruleIds.join(", "))}`;
  const path = [method ?? "", template ?? "every path"]
    .filter((part) => part !== "")
    .map(line)
    .join(" ");
  return `${rules} for ${parameter === null ? path : `${line(parameter)} of ${path}`}`;
}

/**
 * Returns what the platform offers for a clause. Its API has no exception for a rule on a path: it logs a rule's matches without
 * blocking in the whole zone, or switches the WAF off on a path. Both are wider than the clause, and the text says so.
 * `origins` are schemes and hosts of the clause's events: a path without them would hold in the query of any other URL, too.
 */
export function writeForms(
  zoneId: number,
  clause: ExclusionClause,
  origins: readonly string[],
): WrittenForm[] {
  const { ruleIds, template, method } = clause;
  const wide =
    "The platform has no exception for a rule on a path. Its own ones are wider: see their figures first.";
  const review = (ruleId: string) =>
    `curl -X POST "$EDGE_API_URL/shield/waf/rules/review-triggered/${zoneId}" -H "AccessKey: $EDGE_API_KEY" -H 'Content-Type: application/json' --data ${toShell(toJson({ ruleId, action: 1 }))}`;
  const forms: WrittenForm[] = [
    { tool: "text", reach: "clause", text: `Exclude ${describeClause(clause)}. ${wide}` },
    {
      tool: "curl",
      reach: "rule",
      text: `# Logs instead of blocking, on every path of the zone.\n${ruleIds.map(review).join("\n")}`,
    },
    {
      tool: "terraform",
      reach: "rule",
      text: `# Logs instead of blocking, on every path of the zone. Add the rule to the zone's resource.
resource "bunnynet_pullzone_shield" "zone_${zoneId}" {
  waf {
    enabled       = true
    rules_logonly = [${ruleIds.map(toHcl).join(", ")}]
  }
}`,
    },
  ];
  const path = toWrittenPath(template);
  if (path === null || origins.length === 0) return forms;
  const trigger = (type: string, values: readonly string[]) =>
    `    { type = "${type}", match_type = "MatchAny", patterns = [${values.map(toHcl).join(", ")}], parameter1 = null, parameter2 = null },\n`;
  const urls = origins.map((origin) => origin + path);
  const star = path.includes("*") ? " A * also matches slashes and queries, so paths below it too." : "";
  return [
    ...forms,
    {
      tool: "terraform",
      reach: "path",
      text: `# Switches every rule off for these URLs, whatever their query.${star}
resource "bunnynet_pullzone_edgerule" "waf_off" {
  enabled    = true
  pullzone   = var.pullzone_id
  actions    = [{ type = "DisableWAF", parameter1 = null, parameter2 = null, parameter3 = null }]
  match_type = "MatchAll"
  triggers = [
${trigger("Url", urls)}${method === null ? "" : trigger("RequestMethod", [method])}  ]
}`,
    },
  ];
}

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
