import type { Severity } from "./severity.ts";

/** What a route, an inhibition or quiet hours look at. */
export interface Subject {
  /** `spike`, `new-rule` or `self`. */
  readonly kind: string;
  /** Null where the alert is about Longwatch itself and no single zone. */
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  readonly severity: Severity;
}

/** Every member named must match, one of its values is enough; empty matches everything. A rule may end in `*`. */
export interface SubjectMatchers {
  readonly zone?: readonly number[] | undefined;
  readonly rule?: readonly string[] | undefined;
  readonly severity?: readonly Severity[] | undefined;
  readonly kind?: readonly string[] | undefined;
}

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
