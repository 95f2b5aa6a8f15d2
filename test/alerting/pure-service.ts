import type { AlertMessage } from "#model/alert-message.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import {
  acknowledge,
  resolveByHand,
  toAcknowledgedMessage,
  toResolvedMessage,
} from "#stages/alerting/act-on-alert.ts";
import { notifiedChannels } from "#stages/alerting/alert-history.ts";
import type { AlertRecord } from "#stages/alerting/alert-record.ts";
import type { AlertSpike } from "#stages/alerting/alert-spike.ts";
import { type Context, createAssessor } from "#stages/alerting/assess.ts";
import { decide } from "#stages/alerting/decide.ts";
import {
  type Candidate,
  decideGroup,
  groupCandidates,
  toCandidate,
  toMutedAlert,
} from "#stages/alerting/decide-group.ts";
import { findGroups } from "#stages/alerting/group.ts";
import { buildMessage } from "#stages/alerting/message/build-message.ts";
import { buildGroupMessage } from "#stages/alerting/message/group-message.ts";
import { toSituation } from "#stages/alerting/mute.ts";
import { toNotifications } from "#stages/alerting/to-notifications.ts";

export interface HeldAlert {
  readonly id: number;
  readonly fingerprint: string;
  readonly isGroup: boolean;
  record: AlertRecord;
  message: AlertMessage;
}

export type Said = ReturnType<typeof toNotifications>[number] & {
  readonly atMs: number;
  readonly isGroup: boolean;
};

/** The decisions of raise-alerts and of the people over arrays instead of tables; nothing fails and nothing is lost. */
export function createPureService() {
  const alerts: HeldAlert[] = [];
  const said: Said[] = [];
  const newest = (fingerprint: string) => alerts.findLast((alert) => alert.fingerprint === fingerprint);
  const isOpen = ({ record }: HeldAlert) => record.state !== "resolved";

  /** The alert that the next transition is of: a new one where it is the first. */
  function move(
    before: HeldAlert | undefined,
    record: AlertRecord,
    fingerprint: string,
    isGroup: boolean,
  ): HeldAlert {
    if (before !== undefined && record.transition > 1) return Object.assign(before, { record });
    if (before !== undefined && isOpen(before)) throw new Error("a second open alert of one fingerprint");
    const alert = {
      id: alerts.length + 1,
      fingerprint,
      isGroup,
      record,
      message: null as unknown as AlertMessage,
    };
    alerts.push(alert);
    return alert;
  }

  function emit(
    alert: HeldAlert,
    message: AlertMessage,
    recipients: Parameters<typeof toNotifications>[1],
    before: AlertRecord | null,
    atMs: number,
  ): void {
    alert.message = message;
    for (const row of toNotifications(message, recipients, before))
      said.push({ ...row, atMs, isGroup: alert.isGroup });
  }

  const openGroups = () => alerts.filter((alert) => alert.isGroup && isOpen(alert));

  function raiseGroups(spikes: readonly AlertSpike[], context: Context): void {
    const assess = createAssessor(context);
    const open = openGroups().map(({ fingerprint }) => fingerprint);
    const candidates = spikes
      .filter((spike) => !findGroups(openGroups()).has(fingerprintOf(spike)))
      .flatMap((spike) => toCandidate(assess(spike), newest(fingerprintOf(spike))?.record ?? null) ?? []);
    for (const [key, group] of groupCandidates(candidates, open)) raiseGroup(key, group, spikes, context);
  }

  function raiseGroup(
    key: string,
    candidates: readonly Candidate[],
    spikes: readonly AlertSpike[],
    context: Context,
  ): void {
    const held = newest(key);
    const before = held?.record ?? null;
    const state = { alert: before, message: held?.message ?? null, spikes, candidates };
    const decision = decideGroup(state, context, createAssessor(context));
    if (decision === null) return;
    const { alert: record, reason, members, newMembers } = decision;
    const alert = move(held, record, key, true);
    const facts = { alertId: alert.id, fingerprint: key, alert: record, reason, spikes: members };
    emit(alert, buildGroupMessage(facts), decision, before, context.nowMs);
    for (const member of newMembers) {
      const muted = toMutedAlert(member, context);
      if (muted !== null)
        move(newest(muted.fingerprint), muted.alert, muted.fingerprint, false).message = muted.message;
    }
  }

  /** Applies every transition of one spike's alert. */
  function raise(spike: AlertSpike, context: Context): void {
    const fingerprint = fingerprintOf(spike);
    const assessment = createAssessor(context)(spike);
    for (let count = 0; ; count += 1) {
      if (count > 20) throw new Error("never done");
      const held = newest(fingerprint);
      const before = held?.record ?? null;
      const isGroupOpen =
        findGroups(openGroups()).has(fingerprint) ||
        alerts.some((alert) => alert.fingerprint === assessment.groupKey && isOpen(alert));
      const decision = decide(toSituation(assessment, before, isGroupOpen), context);
      if (decision === null) return;
      const { alert: record, reason } = decision;
      const alert = move(held, record, fingerprint, false);
      const advice = { state: assessment.advice.state, text: null, reason: null };
      const message = buildMessage({ alertId: alert.id, fingerprint, alert: record, reason, spike, advice });
      emit(alert, message, decision, before, context.nowMs);
    }
  }

  return {
    alerts,
    said,
    tick(spikes: readonly AlertSpike[], context: Context): void {
      raiseGroups(spikes, context);
      for (const spike of spikes) raise(spike, context);
    },
    acknowledge(alert: HeldAlert, atMs: number): void {
      const before = alert.record;
      if (before.state !== "firing") return;
      const act = { by: "alice", note: null, atMs };
      const transitions = acknowledge(before, act);
      const transition = transitions.length;
      alert.record = { ...before, state: "acknowledged", transition, transitions };
      const notified = [...notifiedChannels(before)];
      emit(alert, toAcknowledgedMessage(alert.message, transition, act), { notified }, before, atMs);
    },
    resolve(alert: HeldAlert, atMs: number): void {
      if (!isOpen(alert)) return;
      const before = alert.record;
      const act = { by: "alice", note: null, atMs };
      const { alert: record, channels } = resolveByHand(before, act);
      alert.record = record;
      emit(alert, toResolvedMessage(alert.message, record, act), { notified: channels }, before, atMs);
      for (const member of alert.message.members ?? []) {
        const own = newest(fingerprintOf({ kind: "spike", ...member }));
        if (own !== undefined && isOpen(own) && notifiedChannels(own.record).size === 0)
          own.record = resolveByHand(own.record, act).alert;
      }
    },
  };
}

export type PureService = ReturnType<typeof createPureService>;
