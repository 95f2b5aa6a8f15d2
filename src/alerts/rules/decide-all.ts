import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import { isChangeKind, isSumRule } from "#model/rules.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { notifiedChannels } from "./alert-history.ts";
import { type AlertRecord, holdsAlert, isMuted } from "./alert-record.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { type Assess, type Assessment, type Context, createAssessor } from "./assess.ts";
import { type Decision, decide, lacksVerdict } from "./decide.ts";
import { gradeByVerdict, hasOutgrown, toSituation } from "./verdict-effects.ts";

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

/** The stored inputs of all decisions of one run. */
export interface Read extends Omit<Context, "firing" | "waitingSums" | "sameMisfires"> {
  readonly verdicts: ReadonlyMap<number, readonly StoredVerdict[]>;
  /** Returns the newest alert of this fingerprint. */
  readonly recordOf: (fingerprint: string) => AlertRecord | null;
}

/** The decision about the alert of a spike, and what it was made from. */
export interface Decided {
  readonly spike: AlertSpike;
  readonly alert: AlertRecord | null;
  readonly assessment: Assessment;
  readonly decision: Decision | null;
  /** Whether the spike is judged again first: its message would lack a verdict of now, or it has outgrown its verdict. */
  readonly needsVerdict: boolean;
}

export interface Decisions {
  /** All spikes, with the severities of their alerts. */
  readonly spikes: readonly AlertSpike[];
  /** The spikes that determine an alert. */
  readonly deciding: readonly AlertSpike[];
  readonly context: Context;
  readonly assess: Assess;
  readonly decideOn: (spike: AlertSpike) => Decided;
}

/**
 * Decides about the alerts of spikes: grades them by their verdicts, finds what mutes them, assesses each of them and decides its next
 * transition. The service decides by it and the back-test, too. `found` are the open spikes and those that closed lately, with the
 * ends that their alerts have and the alerts that they took over.
 */
export function decideAll(found: readonly AlertSpike[], { recordOf, ...read }: Read): Decisions {
  const { verdicts, routing, nowMs } = read;
  const membersOf = Map.groupBy(found, ({ memberOf }) => memberOf ?? null);
  const spikes = found.map((spike) => {
    const members = membersOf.get(spike.id) ?? [];
    return gradeByVerdict(spike, verdicts.get(spike.id) ?? [], { effects: routing.verdict, members });
  });
  const alertOfSpike = (spike: AlertSpike) => recordOf(alertOf(spike));
  const firing = spikes.filter((one) => one.closedAtMs === null && !isResolved(one, alertOfSpike(one)));
  const known = { ...read, firing, waitingSums: findWaitingSums(spikes, nowMs) };
  const context = { ...known, sameMisfires: findSameMisfires(spikes, known, alertOfSpike) };
  const assess = createAssessor(context);
  return {
    spikes,
    deciding: findDeciding(spikes),
    context,
    assess,
    decideOn(spike) {
      const [alert, assessment] = [alertOfSpike(spike), assess(spike)];
      const decision = decide(toSituation(assessment, alert), context);
      const own = verdicts.get(spike.id) ?? [];
      const needsVerdict = decision === null ? hasOutgrown(spike, own) : lacksVerdict(decision, own, nowMs);
      return { spike, alert, assessment, decision, needsVerdict };
    },
  };
}

/** Returns whether the alert of the spike has ended, by a person's act or before the spike was seen again. */
export function isResolved({ id }: AlertSpike, alert: AlertRecord | null): boolean {
  return alert?.state === "resolved" && alert.spikeId !== null && alert.spikeId >= id;
}

const SUM_WAIT_MS = 2 * MINUTE_MS;

/** Returns the ids of the spikes of rules that only add others up and that wait for the spike of one of these, whose alert they are part of. */
function findWaitingSums(spikes: readonly AlertSpike[], nowMs: number): ReadonlySet<number> {
  const isWaiting = ({ ruleId, openedAtMs }: AlertSpike) =>
    isSumRule(ruleId) && nowMs - openedAtMs < SUM_WAIT_MS;
  return new Set(spikes.filter(isWaiting).map(({ id }) => id));
}

/** Misfires of a zone that begin so soon after each other have one cause: a deploy, a rule set, a sale. */
const SAME_MISFIRE_MS = HOUR_MS;

interface Misfire {
  readonly spike: AlertSpike;
  /** The template of its sample's path; empty if there is none. */
  readonly path: string;
  readonly isNotified: boolean;
}

/**
 * Returns the ids of the spikes that are misfires like another one of their zone, which people are notified of: they began
 * within an hour of it, or their requests are on its path. Nobody is notified of them, too, while both latest verdicts say misfire
 * and that alert is open. Of several of which nobody was notified yet, the first is the one, unless it is muted.
 */
function findSameMisfires(
  spikes: readonly AlertSpike[],
  context: Context,
  recordOf: (spike: AlertSpike) => AlertRecord | null,
): ReadonlySet<number> {
  const assess = createAssessor(context);
  const notified: Misfire[] = [];
  const same = new Set<number>();
  for (const one of findMisfires(spikes, context, recordOf)) {
    if (one.isNotified) notified.push(one);
    else if (notified.some((other) => isLike(one, other))) same.add(one.spike.id);
    else if (one.spike.closedAtMs === null && !isMuted(toSituation(assess(one.spike), null).mute))
      notified.push(one);
  }
  return same;
}

/** Returns the misfires of which people were notified, then the others, each in the order of their beginnings. */
function findMisfires(
  spikes: readonly AlertSpike[],
  { verdicts }: Context,
  recordOf: (spike: AlertSpike) => AlertRecord | null,
): Misfire[] {
  const found = spikes.flatMap((spike): Misfire[] => {
    const verdict = verdicts?.get(spike.id)?.at(-1);
    if (verdict?.said !== "misfire" || isChangeKind(spike.kind)) return [];
    const alert = recordOf(spike);
    const isOpen = alert !== null && alert.state !== "resolved" && holdsAlert(alert, spike);
    const path = verdict.sample === null ? "" : templateOf(verdict.sample.url);
    return [{ spike, path, isNotified: isOpen && notifiedChannels(alert).size > 0 }];
  });
  return found.toSorted(
    (a, b) =>
      Number(b.isNotified) - Number(a.isNotified) ||
      a.spike.openedAtMs - b.spike.openedAtMs ||
      a.spike.id - b.spike.id,
  );
}

function isLike(one: Misfire, other: Misfire): boolean {
  if (one.spike.zoneId !== other.spike.zoneId) return false;
  const laterMs = one.spike.openedAtMs - other.spike.openedAtMs;
  return Math.abs(laterMs) <= SAME_MISFIRE_MS || (one.path !== "" && one.path === other.path);
}
