import type { AlertMessage } from "#model/alert-message.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import { isGraver } from "#model/severity.ts";
import { notifiedChannels } from "./alert-history.ts";
import type { AlertRecord, Occurrence } from "./alert-record.ts";
import type { AlertSpike } from "./alert-spike.ts";
import type { Assess, Assessment, Context } from "./assess.ts";
import { beginsEpisode, type Decision, decide } from "./decide.ts";
import { listMembers, toOccurrence } from "./group.ts";
import { buildMessage } from "./message/build-message.ts";
import { toSituation } from "./mute.ts";
import type { RoutePlan } from "./routing/plan-route.ts";

/** A spike that no channel was notified of and that nothing mutes: open, or over before it had an alert. */
export interface Candidate {
  readonly assessment: Assessment;
  /** The newest of its fingerprint. */
  readonly alert: AlertRecord | null;
}

/** Returns null if the spike cannot become a new member of a group. */
export function toCandidate(assessment: Assessment, alert: AlertRecord | null): Candidate | null {
  const { spike, silencedBy, isInhibited } = assessment;
  if (silencedBy !== null || isInhibited) return null;
  const isOpen = alert !== null && alert.state !== "resolved";
  if (isOpen && (spike.closedAtMs !== null || notifiedChannels(alert).size > 0)) return null;
  const isOver = alert?.state === "resolved" && alert.spikeId !== null && spike.id <= alert.spikeId;
  return isOver ? null : { assessment, alert };
}

/** Returns the candidates by group key; every one of `openKeys` has a list, which may be empty. */
export function groupCandidates(
  candidates: readonly Candidate[],
  openKeys: readonly string[],
): ReadonlyMap<string, readonly Candidate[]> {
  const byKey = new Map<string, Candidate[]>(openKeys.map((key) => [key, []]));
  for (const candidate of candidates) {
    const key = candidate.assessment.groupKey;
    if (key !== null) byKey.set(key, [...(byKey.get(key) ?? []), candidate]);
  }
  return byKey;
}

/**
 * Returns whether the group's message stands for this spike. A former member that was over and spikes anew is a new
 * member: whoever acknowledged the group has not seen it. One that only fluctuates is not.
 */
export function isNamed({ assessment, alert }: Candidate, { spikeId, named }: NamedMembers): boolean {
  const { spike } = assessment;
  if (!named.has(fingerprintOf(spike))) return false;
  const isLater = spike.id > (spikeId ?? 0);
  return !isLater || alert === null || !beginsEpisode(alert, spike);
}

/** The members of a group, as its last message has them. */
export interface NamedMembers {
  /** The newest spike of the group's alert. */
  readonly spikeId: number | null;
  readonly named: ReturnType<typeof listMembers>;
}

/** A group's alert and what was read of it. */
export interface GroupState {
  /** The newest alert of the group. */
  readonly alert: AlertRecord | null;
  /** Its latest message. */
  readonly message: AlertMessage | null;
  /** Every spike that may be a member. */
  readonly spikes: readonly AlertSpike[];
  readonly candidates: readonly Candidate[];
}

export interface GroupDecision extends Decision {
  readonly members: readonly AlertSpike[];
  /** The members that no earlier message has named. */
  readonly newMembers: readonly Candidate[];
}

/** Decides the next transition of a group's alert; null if there is none. */
export function decideGroup(
  { alert, message, spikes, candidates }: GroupState,
  context: Context,
  assess: Assess,
): GroupDecision | null {
  const isOpen = alert !== null && alert.state !== "resolved";
  const timing = candidates[0]?.assessment.route.timing;
  if (!isOpen && candidates.length < (timing?.groupFrom ?? 1)) return null;
  const named = listMembers(isOpen ? message : null);
  const group = { spikeId: alert?.spikeId ?? null, named };
  const newMembers = candidates.filter((candidate) => !isNamed(candidate, group));
  const added = new Set(newMembers.map(({ assessment }) => fingerprintOf(assessment.spike)));
  const isFormer = (fingerprint: string) => named.has(fingerprint) && !added.has(fingerprint);
  const members = [
    ...spikes.filter((spike) => isFormer(fingerprintOf(spike))),
    ...newMembers.map(({ assessment }) => assessment.spike),
  ];
  const open = members.filter(({ closedAtMs }) => closedAtMs === null).map(assess);
  const route = mergeRoutes(open.length > 0 ? open : members.map(assess), timing?.groupWaitMs ?? 0);
  const hasNews =
    newMembers.length > 0 ||
    open.some(({ spike }) => isGraver(spike.severity, named.get(fingerprintOf(spike)) ?? spike.severity));
  const isLater = newMembers.some(({ assessment }) => assessment.spike.id > (alert?.spikeId ?? 0));
  const decision = decide(
    {
      // Spikes that were silenced while an earlier group came and went are another group.
      alert: isOpen || isLater ? alert : null,
      occurrence: toOccurrence(members) ?? endWithoutMembers(alert, message, context.nowMs),
      route,
      // A silence mutes the group if all of its open members are silenced.
      mute: {
        silencedBy: open.every(({ silencedBy }) => silencedBy !== null)
          ? (open.at(-1)?.silencedBy ?? null)
          : null,
        mutedBy: null,
      },
      hasAdvice: false,
      newsIntervalMs: isOpen && hasNews ? route.timing.groupIntervalMs : null,
    },
    context,
  );
  return decision === null ? null : { ...decision, members, newMembers };
}

/** A group ends when all of its members were deleted. */
function endWithoutMembers(
  alert: AlertRecord | null,
  message: AlertMessage | null,
  nowMs: number,
): Occurrence {
  const severity = message?.severity ?? "warning";
  return { id: alert?.spikeId ?? null, severity, openedAtMs: nowMs, closedAtMs: nowMs, isCalm: false };
}

/** Returns the channels of all routes, each with its shortest interval. */
function mergeRoutes(open: readonly Assessment[], groupWaitMs: number) {
  const repeatIntervalMs = new Map<string, number>();
  const routes = open.map(({ route }) => route);
  for (const [channel, intervalMs] of routes.flatMap((route) => [...route.repeatIntervalMs]))
    repeatIntervalMs.set(channel, Math.min(intervalMs, repeatIntervalMs.get(channel) ?? intervalMs));
  const channels = new Set(routes.flatMap((route) => route.channels));
  const held = new Set(routes.flatMap((route) => route.held));
  const shortest = (read: (timing: RoutePlan["timing"]) => number) =>
    Math.min(...routes.map(({ timing }) => read(timing)));
  return {
    channels: [...channels],
    held: [...held].filter((channel) => !channels.has(channel)),
    repeatIntervalMs,
    timing: {
      groupWaitMs,
      groupIntervalMs: shortest((timing) => timing.groupIntervalMs),
      repeatIntervalMs: shortest((timing) => timing.repeatIntervalMs),
    },
  };
}

/** A member's own alert, which its group mutes. */
export interface MutedAlert {
  readonly alert: AlertRecord;
  readonly fingerprint: string;
  /** The alert's id is still missing. */
  readonly message: AlertMessage;
}

/** Returns the alert that begins for a new member; null if the member has an alert already. */
export function toMutedAlert({ assessment, alert: before }: Candidate, context: Context): MutedAlert | null {
  const situation = { ...toSituation(assessment, before, true), hasAdvice: false };
  const decision = decide(situation, context);
  if (decision?.reason !== "first") return null;
  const { alert } = decision;
  const { spike, advice: status } = assessment;
  const fingerprint = fingerprintOf(spike);
  const advice = { state: status.state, text: null, reason: status.reason };
  const message = buildMessage({ alertId: 0, fingerprint, alert, reason: "first", spike, advice });
  return { alert, fingerprint, message };
}
