import type { Database, Queryable } from "../db/client.ts";
import { GROUP_KIND, insertAlerts, lockSpikes } from "../db/queries/alert-groups.ts";
import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertAlert,
  insertNotifications,
  readNewestAlerts,
} from "../db/queries/alerts.ts";
import { inTransaction } from "../db/transaction.ts";
import { toOccurrence } from "../src/alert/alert-group.ts";
import {
  type AlertRecord,
  lastToldAt,
  type NotifyReason,
  Transitions,
  toldChannels,
} from "../src/alert/alert-record.ts";
import { type AlertSpike, toAlertSpike } from "../src/alert/alert-spike.ts";
import { type Assessment, assessAlert, type Scene } from "../src/alert/assess-alert.ts";
import { buildMessage } from "../src/alert/build-message.ts";
import { fingerprintOf } from "../src/alert/fingerprint.ts";
import { buildGroupMessage } from "../src/alert/group-message.ts";
import { nextAlert } from "../src/alert/next-alert.ts";
import { notifyReason } from "../src/alert/notify-reason.ts";
import { findDueChannels, type Listeners, pickChannels } from "../src/alert/pick-channels.ts";
import { toAlertRecord } from "../src/alert/to-alert-record.ts";
import type { AlertMessage } from "../src/channel/alert-message.ts";
import { toNotifications } from "./to-notifications.ts";

interface Candidate {
  readonly spike: AlertSpike;
  readonly alert: AlertRecord | null;
  readonly assessment: Assessment;
}

export interface GroupsSeen {
  readonly spikes: readonly AlertSpike[];
  /** The newest of each fingerprint. */
  readonly alerts: ReadonlyMap<string, AlertRow>;
  /** Groups that speak already. */
  readonly open: readonly AlertRow[];
  readonly scene: Scene;
}

export interface GroupsRaised {
  /** Of the transitions that were written. */
  readonly reasons: readonly NotifyReason[];
  /** What kept a group from being raised; it does not hold up the others. */
  readonly failures: readonly unknown[];
}

/**
 * One message for what spikes at once: rules that nobody has heard of and that are told in the same place become an alert
 * of their own, which lives as every alert does. Each rule keeps its alert, muted, so that it can be found, acknowledged
 * and closed by itself. Safe beside itself, as its rows are locked and fenced.
 */
export async function raiseGroups(database: Database, seen: GroupsSeen): Promise<GroupsRaised> {
  const { spikes, alerts, open, scene } = seen;
  const byKey = new Map<string, Candidate[]>(open.map(({ fingerprint }) => [fingerprint, []]));
  for (const spike of spikes) {
    const row = alerts.get(fingerprintOf(spike));
    // One that cannot be read is nobody's companion; raising it alone says why.
    if (row !== undefined && !Transitions.safeParse(row.transitions).success) continue;
    const candidate = toCandidate(spike, row === undefined ? null : toAlertRecord(row), scene);
    const key = candidate?.assessment.groupKey ?? null;
    if (candidate !== null && key !== null) byKey.set(key, [...(byKey.get(key) ?? []), candidate]);
  }
  const reasons: NotifyReason[] = [];
  const failures: unknown[] = [];
  for (const [key, candidates] of byKey) {
    const isOpen = open.some(({ fingerprint }) => fingerprint === key);
    const groupFrom = candidates[0]?.assessment.telling.timing.groupFrom ?? 0;
    if (!isOpen && candidates.length < groupFrom) continue;
    try {
      const reason = await inTransaction(database, ({ tx }) => raiseGroup(tx, key, candidates, seen));
      if (reason !== "none") reasons.push(reason);
    } catch (thrown) {
      failures.push(thrown);
    }
  }
  return { reasons, failures };
}

/** A spike that somebody should hear of and nobody has; null for every other. */
function toCandidate(spike: AlertSpike, alert: AlertRecord | null, scene: Scene): Candidate | null {
  if (
    spike.closedAtMs !== null ||
    (alert !== null && toldChannels(alert).size > 0 && alert.state !== "resolved")
  )
    return null;
  if (alert?.state === "resolved" && alert.spikeId !== null && spike.id <= alert.spikeId) return null;
  const assessment = assessAlert(spike, alert, scene, () => false);
  return assessment.silence === null && assessment.mutedBy === null ? { spike, alert, assessment } : null;
}

async function raiseGroup(
  tx: Queryable,
  key: string,
  seenCandidates: readonly Candidate[],
  { spikes, scene }: GroupsSeen,
): Promise<NotifyReason | "none"> {
  const candidates = await lockCandidates(tx, key, seenCandidates, scene);
  const row = (await readNewestAlerts(tx, [key])).get(key) ?? null;
  const before = row === null ? null : toAlertRecord(row);
  const isOpen = before !== null && before.state !== "resolved";
  const timing = candidates[0]?.assessment.telling.timing;
  if (!isOpen && candidates.length < (timing?.groupFrom ?? 1)) return "none";

  const said = row === null ? undefined : (row.details as { message?: AlertMessage }).message;
  const former = isOpen ? findMembers(said, spikes) : [];
  const formerPrints = new Set(former.map(fingerprintOf));
  const newcomers = candidates.filter(({ spike }) => !formerPrints.has(fingerprintOf(spike)));
  const members = [...former, ...newcomers.map(({ spike }) => spike)];
  const { nowMs, routing } = scene;
  const gone = {
    id: row?.spikeId ?? 0,
    severity: said?.severity ?? "warning",
    openedAtMs: nowMs,
    closedAtMs: nowMs,
  };
  const occurrence = toOccurrence(members) ?? gone;
  const { listeners, held, silencedBy } = gather(members, scene);
  const isSilenced = silencedBy !== null;
  const due = before === null ? [] : findDueChannels(before, listeners, nowMs);
  const facts = { alert: before, spike: occurrence, hasAdvice: false, isSilenced, nowMs };
  let reason = notifyReason({ ...facts, isRepeatDue: due.length > 0 });
  if (reason === "first" && nowMs - occurrence.openedAtMs < (timing?.groupWaitMs ?? 0)) return "none";
  const isGrown = isOpen && newcomers.length > 0 && !isSilenced && timing !== undefined;
  // Who is on it knows; the new ones are told of by the next message, whatever it is for.
  if (reason === "none" && isGrown && nowMs - (lastToldAt(before) ?? 0) >= timing.groupIntervalMs)
    reason = "worse";
  if (reason === "none") return "none";

  const channels = pickChannels({
    reason,
    alert: before,
    channels: listeners.channels,
    configured: routing.channels,
    due,
    isSilenced,
  });
  const alert = nextAlert(before, {
    reason,
    spike: occurrence,
    channels,
    held,
    silencedBy,
    hasAdvice: false,
    nowMs,
  });
  const { state, transition, transitions, spikeId, firedAtMs, resolvedAtMs } = alert;
  const resolvedAt = resolvedAtMs === null ? null : new Date(resolvedAtMs);
  const change = { state, transition, transitions: [...transitions], spikeId, resolvedAt, kind: GROUP_KIND };
  const [zoneId = null, ...otherZones] = new Set(members.map((member) => member.zoneId));
  const about = {
    zoneId: otherZones.length === 0 ? zoneId : null,
    ruleId: null,
    firedAt: new Date(firedAtMs),
  };
  const alertId =
    row === null || reason === "first"
      ? await insertAlert(tx, { ...change, ...about, fingerprint: key })
      : (await changeAlert(tx, row, change))
        ? row.id
        : null;
  if (alertId === null) return "none";
  const message =
    members.length === 0 && said !== undefined
      ? { ...said, transition, reason, state, endedAt: nowMs, headline: "Flood over" }
      : buildGroupMessage({ alertId, fingerprint: key, alert, reason, spikes: members });
  await describeAlert(tx, alertId, { details: { message }, spikeId });
  await insertNotifications(tx, toNotifications(message, channels));
  await insertAlerts(
    tx,
    newcomers.flatMap((one) => toMutedAlert(one, nowMs)),
  );
  return reason;
}

/** As they are now: what another runner has told meanwhile is nobody's candidate any more. */
async function lockCandidates(
  tx: Queryable,
  key: string,
  seen: readonly Candidate[],
  scene: Scene,
): Promise<Candidate[]> {
  const spikes = (
    await lockSpikes(
      tx,
      seen.map(({ spike }) => spike.id),
    )
  ).map(toAlertSpike);
  const rows = await readNewestAlerts(tx, spikes.map(fingerprintOf));
  return spikes.flatMap((spike) => {
    const row = rows.get(fingerprintOf(spike));
    const candidate = toCandidate(spike, row === undefined ? null : toAlertRecord(row), scene);
    return candidate !== null && candidate.assessment.groupKey === key ? [candidate] : [];
  });
}

function findMembers(said: AlertMessage | undefined, spikes: readonly AlertSpike[]): AlertSpike[] {
  const prints = new Set((said?.members ?? []).map((member) => fingerprintOf({ kind: "spike", ...member })));
  return spikes.filter((spike) => prints.has(fingerprintOf(spike)));
}

/** Who hears of the members that still fire, and the silence over all of them. */
function gather(members: readonly AlertSpike[], scene: Scene) {
  const repeatIntervalMs = new Map<string, number>();
  const channels = new Set<string>();
  const held = new Set<string>();
  let silencedBy: number | null = null;
  let isHeard = false;
  for (const spike of members) {
    if (spike.closedAtMs !== null) continue;
    const { telling, silence } = assessAlert(spike, null, scene, () => false);
    if (silence === null) isHeard = true;
    else silencedBy = silence.id;
    for (const channel of telling.channels) channels.add(channel);
    for (const channel of telling.held) held.add(channel);
    for (const [channel, intervalMs] of telling.repeatIntervalMs)
      repeatIntervalMs.set(channel, Math.min(intervalMs, repeatIntervalMs.get(channel) ?? intervalMs));
  }
  const listeners: Listeners = { channels: [...channels], repeatIntervalMs };
  const later = [...held].filter((channel) => !channels.has(channel));
  return { listeners, held: later, silencedBy: isHeard ? null : silencedBy };
}

/** The member's own alert, where it has none to go on with: there to be found, told to nobody. */
function toMutedAlert({ spike, alert: before, assessment }: Candidate, nowMs: number) {
  const facts = { alert: before, spike, hasAdvice: false, isSilenced: true, nowMs };
  if (notifyReason(facts) !== "first") return [];
  const muted = { channels: [], silencedBy: null, mutedBy: "group" as const, hasAdvice: false };
  const alert = nextAlert(null, { reason: "first", spike, ...muted, nowMs });
  const fingerprint = fingerprintOf(spike);
  const { state, reason } = assessment.standing;
  const advice = { state, text: null, reason };
  const message = buildMessage({ alertId: 0, fingerprint, alert, reason: "first", spike, advice });
  return [
    {
      firedAt: new Date(alert.firedAtMs),
      spikeId: spike.id,
      zoneId: spike.zoneId,
      ruleId: spike.ruleId,
      transition: alert.transition,
      transitions: [...alert.transitions],
      state: alert.state,
      kind: spike.kind,
      fingerprint,
      details: { message },
    },
  ];
}
