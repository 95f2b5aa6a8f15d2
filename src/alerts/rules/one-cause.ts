import { fingerprintOf } from "#model/fingerprint.ts";
import { isSumRule } from "#model/rules.ts";
import { notifiedChannels } from "./alert-history.ts";
import { type AlertRecord, holdsAlert } from "./alert-record.ts";
import type { AlertSpike } from "./alert-spike.ts";

/**
 * Returns the spikes that go on with the alert of one of their members, each with this member: an incident with that of a rule, and a
 * rule with that of one that only adds others up. It is the alert of which people were notified first. So the thread, the
 * acknowledgement and the key at the receivers stay, and one cause makes one alert. A spike that has an alert is none of them, nor
 * is one of whose members nobody was notified.
 */
export function findTakeOvers(
  spikes: readonly AlertSpike[],
  recordOf: (spike: AlertSpike) => AlertRecord | null,
): { readonly spike: AlertSpike; readonly member: AlertSpike }[] {
  const membersOf = Map.groupBy(spikes, ({ memberOf }) => memberOf ?? null);
  return spikes.flatMap((spike) => {
    const members = membersOf.get(spike.id) ?? [];
    if (members.length === 0 || spike.closedAtMs !== null || spike.takesOver != null) return [];
    if (holdsAlert(recordOf(spike), spike)) return [];
    const notified = members.flatMap((member) => {
      const alert = recordOf(member);
      const isNotified = alert !== null && alert.state !== "resolved" && notifiedChannels(alert).size > 0;
      return isNotified && (spike.kind === "sources" || isSumRule(member.ruleId))
        ? [{ member, firedAtMs: alert.firedAtMs }]
        : [];
    });
    const [first] = notified.toSorted((a, b) => a.firedAtMs - b.firedAtMs);
    return first === undefined ? [] : [{ spike, member: first.member }];
  });
}

/** Returns the name of a spike's alert: its own, or that of the alert that it took over. */
export function alertOf(spike: AlertSpike): string {
  return spike.takesOver ?? fingerprintOf(spike);
}

/**
 * Returns of each alert the spike that decides about it. That is usually its only one. If a spike has taken the alert of a rule over,
 * it decides until it has ended. A later spike of the rule decides after that, because it has a cause of its own.
 */
export function findDeciding(spikes: readonly AlertSpike[]): AlertSpike[] {
  const byAlert = Map.groupBy(spikes, alertOf);
  return [...byAlert.values()].flatMap((ofAlert) => {
    const [taker] = ofAlert.filter(({ takesOver }) => takesOver != null).toSorted((a, b) => b.id - a.id);
    if (taker === undefined) return ofAlert;
    const isLater = ({ id, memberOf, takesOver }: AlertSpike) =>
      takesOver == null && id > taker.id && memberOf !== taker.id;
    return [(taker.closedAtMs === null ? undefined : ofAlert.find(isLater)) ?? taker];
  });
}

/**
 * Returns the spikes with the ends that their alerts have. The alert of a member ends with that of its lead: a member never
 * outlives its incident without a new cause. The alert of a rule goes on while a rule that is part of it does. A lead that is
 * not among the spikes has ended long ago. The members of a rule that has become part of an incident are the incident's.
 */
export function endTogether(read: readonly AlertSpike[], nowMs: number): AlertSpike[] {
  const spikes = joinLeads(read);
  const byId = new Map(spikes.map((spike) => [spike.id, spike]));
  const isOpen = new Set(spikes.flatMap((one) => (one.closedAtMs === null ? (one.memberOf ?? []) : [])));
  return spikes.map((spike) => {
    const { id, kind, memberOf, closedAtMs } = spike;
    if (memberOf == null)
      return kind !== "sources" && isOpen.has(id) ? { ...spike, closedAtMs: null } : spike;
    const lead = byId.get(memberOf);
    if (
      closedAtMs !== null ||
      (lead !== undefined && (lead.closedAtMs === null || (isOpen.has(lead.id) && lead.kind !== "sources")))
    )
      return spike;
    return { ...spike, closedAtMs: lead?.closedAtMs ?? nowMs };
  });
}

/** Returns the spikes with the lead of their lead, if that is part of another alert itself. */
function joinLeads(spikes: readonly AlertSpike[]): AlertSpike[] {
  const leads = new Map(spikes.map(({ id, memberOf }) => [id, memberOf ?? null]));
  return spikes.map((spike) => {
    const above = spike.memberOf == null ? null : (leads.get(spike.memberOf) ?? null);
    return above === null ? spike : { ...spike, memberOf: above };
  });
}
