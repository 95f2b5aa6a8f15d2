import type { Subject, SubjectMatchers } from "../alerting/routing/routing.ts";

export function matchesSubject(matchers: SubjectMatchers, subject: Subject): boolean {
  const { zone, rule, severity, kind } = matchers;
  return (
    (zone === undefined || (subject.zoneId !== null && zone.includes(subject.zoneId))) &&
    (rule === undefined || rule.some((pattern) => matchesRule(pattern, subject.ruleId))) &&
    (severity === undefined || severity.includes(subject.severity)) &&
    (kind === undefined || kind.includes(subject.kind))
  );
}

/** `942100`, or a family: `942*`. */
export function matchesRule(pattern: string, ruleId: string | null): boolean {
  if (ruleId === null) return false;
  return pattern.endsWith("*") ? ruleId.startsWith(pattern.slice(0, -1)) : ruleId === pattern;
}
