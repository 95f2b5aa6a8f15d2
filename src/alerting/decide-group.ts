import type { AlertMessage } from "../model/alert-message.ts";
import { type AlertRecord, lastToldAt, type NotifyReason } from "../model/alert-record.ts";
import { fingerprintOf } from "../model/fingerprint.ts";
import { toOccurrence } from "./alert-group.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { assessAlert, type Scene } from "./assess-alert.ts";
import { type Candidate, findMembers } from "./group-candidates.ts";
import { nextAlert } from "./next-alert.ts";
import { notifyReason } from "./notify-reason.ts";
import type { Occurrence } from "./occurrence.ts";
import { pickChannels } from "./pick-channels.ts";
import { findDue, type Listeners, NOTHING_DUE, type Ringing } from "./plan-ringing.ts";

/** What a group's alert is and what was read of it. */
export interface GroupStanding {
  /** The newest of the group's; null where it has never spoken. */
  readonly before: AlertRecord | null;
  /** Its last message. */
  readonly said: AlertMessage | undefined;
  /** Everything that may be a member of it. */
  readonly spikes: readonly AlertSpike[];
  /** Those that nobody has heard of, as they are under lock. */
  readonly candidates: readonly Candidate[];
}

/** One transition of a group's alert. */
export interface GroupDecision {
  readonly reason: NotifyReason;
  /** After the transition. */
  readonly alert: AlertRecord;
  readonly before: AlertRecord | null;
  readonly told: Ringing;
  /** All it speaks for now, and those of them that are new. */
  readonly members: readonly AlertSpike[];
  readonly newcomers: readonly Candidate[];
}

/** What there is to say of a group now; null where there is nothing. */
export function decideGroup(standing: GroupStanding, scene: Scene): GroupDecision | null {
  const { before, said, spikes, candidates } = standing;
  const isOpen = before !== null && before.state !== "resolved";
  const timing = candidates[0]?.assessment.telling.timing;
  if (!isOpen && candidates.length < (timing?.groupFrom ?? 1)) return null;
  const former = isOpen ? findMembers(said, spikes) : [];
  const formerPrints = new Set(former.map(fingerprintOf));
  const newcomers = candidates.filter(({ spike }) => !formerPrints.has(fingerprintOf(spike)));
  const members = [...former, ...newcomers.map(({ spike }) => spike)];
  const { nowMs, routing } = scene;
  const occurrence = toOccurrence(members) ?? goneAt(nowMs, before, said);
  const { listeners, held, silencedBy } = gatherListeners(members, scene);
  const isSilenced = silencedBy !== null;
  const due = before === null ? NOTHING_DUE : findDue(before, listeners, occurrence, nowMs);
  let reason = notifyReason({ alert: before, spike: occurrence, hasAdvice: false, isSilenced, nowMs, due });
  if (reason === "first" && nowMs - occurrence.openedAtMs < (timing?.groupWaitMs ?? 0)) return null;
  const isGrown = isOpen && newcomers.length > 0 && !isSilenced && timing !== undefined;
  const isTimeForNews = isGrown && nowMs - (lastToldAt(before) ?? 0) >= timing.groupIntervalMs;
  // Once a message has named the new ones they are news to nobody: it is everybody's, now or when they may be rung.
  if ((reason === "none" && isTimeForNews) || (reason === "repeat" && isGrown)) reason = "worse";
  if (reason === "none") return null;
  const { channels: configured } = routing;
  const owed = isGrown ? { ...due, rise: [] } : due;
  const choice = {
    reason,
    alert: before,
    spike: occurrence,
    listeners,
    configured,
    due: owed,
    isSilenced,
    nowMs,
  };
  const told = pickChannels(choice);
  const change = { reason, spike: occurrence, ...told, held, silencedBy, hasAdvice: false, nowMs };
  const next = nextAlert(before, change);
  // Without members there is no spike that it could stand for but the one it stood for, if that is still there.
  const alert = members.length > 0 ? next : { ...next, spikeId: before?.spikeId ?? null };
  return { reason, before, alert, told, members, newcomers };
}

/** A group all of whose members were deleted is over. */
function goneAt(nowMs: number, before: AlertRecord | null, said: AlertMessage | undefined): Occurrence {
  const severity = said?.severity ?? "warning";
  return { id: before?.spikeId ?? 0, severity, openedAtMs: nowMs, closedAtMs: nowMs };
}

/** Who hears of the members that still fire, and the silence over all of them. */
function gatherListeners(members: readonly AlertSpike[], scene: Scene) {
  const repeatIntervalMs = new Map<string, number>();
  let ringIntervalMs = Number.POSITIVE_INFINITY;
  const channels = new Set<string>();
  const held = new Set<string>();
  let silencedBy: number | null = null;
  let isHeard = false;
  for (const spike of members) {
    if (spike.closedAtMs !== null) continue;
    const { telling, silence } = assessAlert(spike, null, scene, () => false);
    if (silence === null) isHeard = true;
    else silencedBy = silence.id;
    ringIntervalMs = Math.min(ringIntervalMs, telling.timing.groupIntervalMs);
    for (const channel of telling.channels) channels.add(channel);
    for (const channel of telling.held) held.add(channel);
    for (const [channel, intervalMs] of telling.repeatIntervalMs)
      repeatIntervalMs.set(channel, Math.min(intervalMs, repeatIntervalMs.get(channel) ?? intervalMs));
  }
  const { mannerOf } = scene;
  const listeners: Listeners = { channels: [...channels], repeatIntervalMs, ringIntervalMs, mannerOf };
  const later = [...held].filter((channel) => !channels.has(channel));
  return { listeners, held: later, silencedBy: isHeard ? null : silencedBy };
}
