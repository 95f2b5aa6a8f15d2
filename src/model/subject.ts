import type { Severity } from "./kinds.ts";
import { matchesSources, type SourceMatchers, type SourceTraits } from "./source-traits.ts";

/** The facts that routes, inhibitions and quiet hours match. */
export interface Subject {
  /** One of `SUBJECT_KINDS`. */
  readonly kind: string;
  /** Null if the alert is about Longwatch itself and not about a zone. */
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  /** The rules of an alert about several; one of them is enough. */
  readonly rules?: readonly string[];
  readonly severity: Severity;
  /** The sources that the alert is about. */
  readonly traits?: SourceTraits;
}

/**
 * The values to match. Each given member must match one of its values. An empty object matches everything. A rule may
 * end in `*`.
 */
export interface SubjectMatchers extends SourceMatchers {
  readonly zone?: readonly number[] | undefined;
  readonly rule?: readonly string[] | undefined;
  readonly severity?: readonly Severity[] | undefined;
  readonly kind?: readonly string[] | undefined;
}

export function matchesSubject(matchers: SubjectMatchers, subject: Subject): boolean {
  const { zone, rule, severity, kind } = matchers;
  const ids = subject.rules ?? [subject.ruleId];
  return (
    (zone === undefined || (subject.zoneId !== null && zone.includes(subject.zoneId))) &&
    (rule === undefined || rule.some((pattern) => ids.some((id) => matchesRule(pattern, id)))) &&
    (severity === undefined || severity.includes(subject.severity)) &&
    (kind === undefined || kind.includes(subject.kind)) &&
    matchesSources(matchers, subject.traits)
  );
}

/** Returns whether the rule is the pattern's rule (`942100`) or in its family (`942*`). */
export function matchesRule(pattern: string, ruleId: string | null): boolean {
  if (ruleId === null) return false;
  return pattern.endsWith("*") ? ruleId.startsWith(pattern.slice(0, -1)) : ruleId === pattern;
}
