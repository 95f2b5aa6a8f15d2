import type { AlertMessage } from "#model/alert-message.ts";
import { digest, fingerprintOf } from "#model/fingerprint.ts";
import type { Severity } from "#model/kinds.ts";
import { gravestOf } from "#model/severity.ts";
import type { Occurrence } from "./alert-record.ts";
import { type AlertSpike, isCalm } from "./alert-spike.ts";
import type { RoutePlan } from "./routing/plan-route.ts";

/** Returns what the alerts of one group have in common, which is also the fingerprint of the group's alert; null if alerts are not grouped. */
export function groupKeyOf(
  { timing, channels, held }: RoutePlan,
  { zoneId, ruleId }: Pick<AlertSpike, "zoneId" | "ruleId">,
): string | null {
  const { groupBy } = timing;
  if (groupBy.includes("zone") && groupBy.includes("rule")) return null;
  const zone = groupBy.includes("zone") ? zoneId : null;
  const rule = groupBy.includes("rule") ? ruleId : null;
  // Alerts for different channels are different groups; quiet hours make no difference.
  return digest(["group", zone, rule, ...[...channels, ...held].sort()]);
}

/** Returns the members as if they were one spike, so that a group has the lifecycle of every alert; null without members. */
export function toOccurrence(members: readonly AlertSpike[]): Occurrence | null {
  const [first] = members;
  if (first === undefined) return null;
  const isOpen = members.some(({ closedAtMs }) => closedAtMs === null);
  return {
    id: Math.max(...members.map(({ id }) => id)),
    severity: gravestOf(members.map((member) => member.severity)),
    openedAtMs: Math.min(...members.map(({ openedAtMs }) => openedAtMs)),
    isCalm: members.every(isCalm),
    closedAtMs: isOpen ? null : Math.max(...members.map(({ closedAtMs }) => closedAtMs ?? 0)),
  };
}

/** An open group, and its latest message. */
export interface OpenGroup {
  readonly fingerprint: string;
  readonly message: AlertMessage | null;
}

/** Returns the severity of each member that a group's message names, by fingerprint. */
export function listMembers(message: AlertMessage | null): ReadonlyMap<string, Severity> {
  return new Map(
    (message?.members ?? []).map((member) => [fingerprintOf({ kind: "spike", ...member }), member.severity]),
  );
}

/**
 * Returns by fingerprint the open group that has the alert as a member. A member stays in its group when its severity
 * changes to one of another route: the group then notifies the channels of that route as well.
 */
export function findGroups(open: readonly OpenGroup[]): ReadonlyMap<string, string> {
  return new Map(
    open.flatMap(({ fingerprint, message }) =>
      [...listMembers(message).keys()].map((member) => [member, fingerprint] as const),
    ),
  );
}
