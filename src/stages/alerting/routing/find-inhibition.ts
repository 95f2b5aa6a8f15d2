import type { EqualLabel } from "#model/kinds.ts";
import type { Subject } from "#model/subject.ts";
import { matchesSubject } from "#model/subject.ts";
import type { Inhibition } from "./routing.ts";

/**
 * Returns the inhibition that mutes `subject` while the `firing` alerts fire; null if there is none. An alert that is
 * both source and target of an inhibition is not muted by another such alert: two of them would mute each other.
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

function isEqual(label: EqualLabel, subject: Subject, other: Subject): boolean {
  return label === "zone" ? subject.zoneId === other.zoneId : subject.ruleId === other.ruleId;
}
