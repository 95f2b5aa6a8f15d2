import { digest } from "../model/fingerprint.ts";
import { isGraver, type Severity } from "../model/severity.ts";
import { type AlertSpike, isCalm } from "./alert-spike.ts";
import type { Occurrence } from "./occurrence.ts";
import type { Telling } from "./routing/plan-telling.ts";

/** What the alerts of one group have in common; also the fingerprint of the alert that speaks for them. */
export function groupKeyOf(
  { timing, channels, held }: Telling,
  { zoneId, ruleId }: Pick<AlertSpike, "zoneId" | "ruleId">,
): string | null {
  const { groupBy } = timing;
  if (groupBy.includes("zone") && groupBy.includes("rule")) return null;
  const zone = groupBy.includes("zone") ? zoneId : null;
  const rule = groupBy.includes("rule") ? ruleId : null;
  // Those that are told in different places are told apart; quiet hours do not make another place.
  return digest(["group", zone, rule, ...[...channels, ...held].sort()]);
}

/** The members as if they were one spike, so that a group lives as every alert does. Null without members. */
export function toOccurrence(members: readonly AlertSpike[]): Occurrence | null {
  const [first] = members;
  if (first === undefined) return null;
  const isOpen = members.some(({ closedAtMs }) => closedAtMs === null);
  return {
    id: Math.max(...members.map(({ id }) => id)),
    severity: gravestOf(members),
    openedAtMs: Math.min(...members.map(({ openedAtMs }) => openedAtMs)),
    isCalm: members.every(isCalm),
    closedAtMs: isOpen ? null : Math.max(...members.map(({ closedAtMs }) => closedAtMs ?? 0)),
  };
}

export function gravestOf(members: readonly { readonly severity: Severity }[]): Severity {
  return members.reduce<Severity>(
    (gravest, { severity }) => (isGraver(severity, gravest) ? severity : gravest),
    "info",
  );
}
