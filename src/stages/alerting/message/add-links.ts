import { formatIso } from "#lib/format.ts";
import { type AlertMessage, MAX_LINKS } from "#model/alert-message.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { matchesRule, matchesSubject } from "#model/subject.ts";
import type { LinkRule } from "../routing/routing.ts";
import { fillTemplate, type LinkValues } from "./link-template.ts";

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
    if (isFor(rule.matchers, message)) links.push(...fill(rule, values));
  }
  return { ...message, links };
}

/** Returns every link, filled in with values of an alert that it could match, for a test message. */
export function sampleLinks(rules: readonly LinkRule[], zoneId: number, atMs: number): Links {
  const times = { startedAt: atMs, endedAt: null };
  return rules.flatMap((link) => {
    const { zone, rule } = link.matchers;
    const ruleId = rule === undefined ? SAMPLE_RULE : toSampleRule(rule);
    return fill(link, valuesOf({ ...times, zoneId: zone?.[0] ?? zoneId, ruleId, alertId: 1 }, atMs));
  });
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

function toSampleRule([pattern = SAMPLE_RULE]: readonly string[]): string {
  return matchesRule(pattern, SAMPLE_RULE) ? SAMPLE_RULE : pattern.replace(/\*$/, "");
}
