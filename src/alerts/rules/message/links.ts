/** Links of a message, and the templates of links. */
import { formatIso, showIso } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type AlertMessage, MAX_LINKS, MAX_URL_CHARS } from "#model/alert-message.ts";
import { toExplorerParameters } from "#model/custom-condition.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { matchesRule, matchesSubject } from "#model/subject.ts";
import type { LinkRule } from "../routing/routing.ts";

/** How much time before an attack a dashboard should show. */
const LEAD_MS = 3_600_000;
const SAMPLE_RULE = "942100";

type Links = AlertMessage["links"];

/**
 * Returns a message with the operator's matching links, filled in: the first five, in their order. A link is left out
 * if the alert has no value for one of its places. `atMs` is the end of the time range for an alert that still fires.
 */
export function addLinks(message: AlertMessage, rules: readonly LinkRule[], atMs: number): AlertMessage {
  const values = valuesOf(message, atMs);
  const links: Links = [];
  for (const rule of rules) {
    if (links.length === MAX_LINKS) break;
    if (!isFor(rule.matchers, message)) continue;
    links.push(...(rule.isSearch === true ? toSearch(rule, message, atMs) : fill(rule, values)));
  }
  return { ...message, links };
}

/** Returns every link, filled in with values of an alert that it could match, for a test message. */
export function sampleLinks(rules: readonly LinkRule[], zoneId: number, atMs: number): Links {
  return rules.flatMap((link) => {
    if (link.isSearch === true) return [];
    const { zone, rule } = link.matchers;
    const subject = { zoneId: zone?.[0] ?? zoneId, ruleId: toSampleRule(rule), alertId: 1 };
    return fill(link, valuesOf({ ...subject, startedAt: atMs, endedAt: null }, atMs));
  });
}

/** Returns the link to the events of a custom condition, from an hour before its alert on; none that would be too long. */
function toSearch({ title, url }: LinkRule, message: AlertMessage, atMs: number): Links {
  const { condition, zoneId, startedAt, endedAt } = message;
  const asked = condition === undefined ? null : toExplorerParameters(condition);
  if (asked === null) return [];
  const from = showIso(startedAt - LEAD_MS);
  const to = showIso(Math.max(endedAt ?? atMs, startedAt) + MINUTE_MS);
  const parameters = new URLSearchParams([["zone", String(zoneId)], ["from", from], ["to", to], ...asked]);
  const href = `${url}?${parameters.toString()}`;
  return href.length > MAX_URL_CHARS ? [] : [{ title, url: href }];
}

function fill({ title, url: template }: LinkRule, values: LinkValues): Links {
  const url = fillTemplate(template, values);
  return url === null ? [] : [{ title, url }];
}

/** A matcher matches a message about many rules if it matches every one of them. */
function isFor(matchers: LinkRule["matchers"], message: AlertMessage): boolean {
  const { kind, severity, zoneId, ruleId, rules, members } = message;
  const own = rules?.map((one) => ({ zoneId, ruleId: one })) ?? [{ zoneId, ruleId }];
  const subjects = members === undefined || members.length === 0 ? own : members;
  return subjects.every((one) => {
    return matchesSubject(matchers, { kind, severity, zoneId: one.zoneId, ruleId: one.ruleId });
  });
}

type Filling = Pick<AlertMessage, "zoneId" | "ruleId" | "alertId" | "startedAt" | "endedAt">;

function valuesOf({ zoneId, ruleId, alertId, startedAt, endedAt }: Filling, atMs: number): LinkValues {
  const from = new Date(formatIso(startedAt - LEAD_MS));
  const to = new Date(formatIso(Math.max(endedAt ?? atMs, startedAt)));
  return {
    zone: zoneId === null ? null : String(zoneId),
    // An incident is about no single rule.
    rule: ruleId === SOURCES_RULE ? null : ruleId,
    // The message of a rule in a group is built before its alert has a number.
    alert: alertId === 0 ? null : String(alertId),
    from: from.toISOString(),
    to: to.toISOString(),
    from_ms: String(from.getTime()),
    to_ms: String(to.getTime()),
    from_s: String(Math.floor(from.getTime() / 1_000)),
    to_s: String(Math.ceil(to.getTime() / 1_000)),
  };
}

function toSampleRule([pattern = SAMPLE_RULE]: readonly string[] = []): string {
  return matchesRule(pattern, SAMPLE_RULE) ? SAMPLE_RULE : pattern.replace(/\*$/, "");
}

/** The text for each place; null where the alert has none. */
export type LinkValues = Readonly<Record<Placeholder, string | null>>;

export const PLACEHOLDERS = [
  "zone",
  "rule",
  "alert",
  "from",
  "to",
  "from_ms",
  "to_ms",
  "from_s",
  "to_s",
] as const;
type Placeholder = (typeof PLACEHOLDERS)[number];

/** Leaves space for the values. */
export const MAX_TEMPLATE_CHARS = 400;

const PLACE = /\{([^{}]*)\}/g;
/** Scheme, host and port, up to where the path, the query or the fragment begins. */
const ORIGIN = /^https?:\/\/[^/?#@\\{}]+(?=[/?#]|$)/i;
/** Parsers take the encoded form for dots too. */
const DOT_SEGMENT = /^(?:\.|%2e){1,2}$/i;

/** Returns the rule that a template breaks, worded to follow the template's value; null if it breaks none. */
export function findTemplateMistake(url: string): string | null {
  if (url.length > MAX_TEMPLATE_CHARS) return `must be at most ${MAX_TEMPLATE_CHARS} characters`;
  if (/[\s\p{C}\\]/u.test(url)) return "must not contain spaces, control characters or backslashes";
  if (!/^https?:\/\//i.test(url)) return "must begin with https:// or http://";
  if (!ORIGIN.test(url)) return "must name a host, without a user and without a placeholder in the host";
  const unknown = [...url.matchAll(PLACE)].find(([, name]) => !isPlaceholder(name));
  if (unknown !== undefined) return `must not contain ${unknown[0]}; the placeholders are ${SHOWN}`;
  if (/[{}]/.test(url.replace(PLACE, "")))
    return "must close every brace; write %7B and %7D for braces that are part of the URL";
  if (!URL.canParse(url.replace(PLACE, "1"))) return "must be a complete URL with a valid host and port";
  return fillTemplate(url, SAMPLE) === null ? "must not contain /./ or /../ in its path" : null;
}

/**
 * Returns the address with every place filled in. Each value is percent-encoded, so it cannot change the address's
 * structure. Null if a value is missing, if a hostile value would lead to another path, or if the address is too long.
 */
export function fillTemplate(url: string, values: LinkValues): string | null {
  let isWhole = true;
  const filled = url.replace(PLACE, (_, name: string) => {
    const value = isPlaceholder(name) ? values[name] : null;
    isWhole &&= value !== null && value !== "";
    return encode(value ?? "");
  });
  const path = filled.replace(/[?#].*$/s, "").replace(ORIGIN, "");
  if (!isWhole || !URL.canParse(filled) || path.split("/").some((part) => DOT_SEGMENT.test(part)))
    return null;
  const { href } = new URL(filled);
  return href.length <= MAX_URL_CHARS ? href : null;
}

function isPlaceholder(name: string | undefined): name is Placeholder {
  return (PLACEHOLDERS as readonly (string | undefined)[]).includes(name);
}

/** Stricter than encodeURIComponent, which leaves signs that some receivers give a meaning, and which fails on halves. */
function encode(value: string): string {
  const toHex = (sign: string) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(value.toWellFormed()).replace(/[!'()*~]/g, toHex);
}

const SHOWN = PLACEHOLDERS.map((name) => `{${name}}`).join(" ");
const SAMPLE = Object.fromEntries(PLACEHOLDERS.map((name) => [name, "1"])) as Record<Placeholder, string>;
