import type { Subject } from "../../model/subject.ts";
import { matchesSubject } from "../../model/subject.ts";
import type { Inhibition, Label } from "./routing.ts";

/**
 * The inhibition that keeps `subject` from the channels while `firing` is so; null when there is none. What is source
 * and target of the same inhibition is not held back by its like: two of them would silence each other.
 */
export function findInhibition(
  inhibitions: readonly Inhibition[],
  subject: Subject,
  firing: readonly Subject[],
): Inhibition | null {
  const holds = ({ source, target, equal }: Inhibition) =>
    matchesSubject(target, subject) &&
    !matchesSubject(source, subject) &&
    firing.some(
      (other) => matchesSubject(source, other) && equal.every((label) => isEqual(label, subject, other)),
    );
  return inhibitions.find(holds) ?? null;
}

function isEqual(label: Label, subject: Subject, other: Subject): boolean {
  return label === "zone" ? subject.zoneId === other.zoneId : subject.ruleId === other.ruleId;
}
