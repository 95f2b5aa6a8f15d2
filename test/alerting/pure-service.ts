import { toNotifications } from "../../jobs/alerting/to-notifications.ts";
import {
  acknowledge,
  resolveByHand,
  toAcknowledgedMessage,
  toResolvedMessage,
} from "../../src/alerting/act-on-alert.ts";
import { type AlertSpike, isCalm } from "../../src/alerting/alert-spike.ts";
import { assessAlert, type Scene } from "../../src/alerting/assess-alert.ts";
import { decideGroup } from "../../src/alerting/decide-group.ts";
import {
  type Candidate,
  findSpokenFor,
  groupCandidates,
  toCandidate,
} from "../../src/alerting/group-candidates.ts";
import { buildMessage } from "../../src/alerting/message/build-message.ts";
import { buildGroupMessage } from "../../src/alerting/message/group-message.ts";
import { toMutedAlert } from "../../src/alerting/muted-alert.ts";
import { nextAlert } from "../../src/alerting/next-alert.ts";
import { pickChannels } from "../../src/alerting/pick-channels.ts";
import type { AlertMessage } from "../../src/model/alert-message.ts";
import { type AlertRecord, toldChannels } from "../../src/model/alert-record.ts";
import { fingerprintOf } from "../../src/model/fingerprint.ts";

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
    to: Parameters<typeof toNotifications>[1],
    atMs: number,
  ): void {
    alert.message = message;
    for (const row of toNotifications(message, to)) said.push({ ...row, atMs, isGroup: alert.isGroup });
  }

  const listSpokenFor = () =>
    findSpokenFor(
      alerts
        .filter((alert) => alert.isGroup && isOpen(alert))
        .map(({ fingerprint, message }) => ({ fingerprint, said: message })),
    );

  function raiseGroups(spikes: readonly AlertSpike[], scene: Scene): void {
    const open = alerts
      .filter((alert) => alert.isGroup && isOpen(alert))
      .map(({ fingerprint }) => fingerprint);
    const candidates = spikes
      .filter((spike) => !listSpokenFor().has(fingerprintOf(spike)))
      .flatMap((spike) => toCandidate(spike, newest(fingerprintOf(spike))?.record ?? null, scene) ?? []);
    for (const [key, group] of groupCandidates(candidates, open)) raiseGroup(key, group, spikes, scene);
  }

  function raiseGroup(
    key: string,
    candidates: readonly Candidate[],
    spikes: readonly AlertSpike[],
    scene: Scene,
  ): void {
    const held = newest(key);
    const standing = { before: held?.record ?? null, said: held?.message, spikes, candidates };
    const decision = decideGroup(standing, scene);
    if (decision === null) return;
    const { alert: record, reason, members, told, before, newcomers } = decision;
    const alert = move(held, record, key, true);
    const facts = { alertId: alert.id, fingerprint: key, alert: record, reason, spikes: members };
    emit(alert, buildGroupMessage(facts), { ...told, alert: before }, scene.nowMs);
    for (const newcomer of newcomers) {
      const muted = toMutedAlert(newcomer, scene.nowMs);
      if (muted !== null)
        move(newest(muted.fingerprint), muted.alert, muted.fingerprint, false).message = muted.message;
    }
  }

  /** Everything there is to say of one spike now. */
  function raise(spike: AlertSpike, scene: Scene): void {
    const fingerprint = fingerprintOf(spike);
    for (let count = 0; ; count += 1) {
      if (count > 20) throw new Error("never done");
      const held = newest(fingerprint);
      const before = held?.record ?? null;
      const isSpokenFor = (key: string | null) =>
        listSpokenFor().has(fingerprint) ||
        alerts.some((alert) => alert.fingerprint === key && isOpen(alert));
      const { reason, ...seen } = assessAlert(spike, before, scene, isSpokenFor);
      if (reason === "none") return;
      const { silence, mutedBy, standing, listeners, due, telling } = seen;
      const { nowMs } = scene;
      const isSilenced = silence !== null || mutedBy !== null;
      const occurrence = { ...spike, isCalm: isCalm(spike) };
      const configured = scene.routing.channels;
      const told = pickChannels({
        reason,
        alert: before,
        spike: occurrence,
        listeners,
        due,
        isSilenced,
        nowMs,
        configured,
      });
      const hasAdvice = standing.state === "present";
      const muted = { silencedBy: silence?.id ?? null, mutedBy, held: telling.held };
      const record = nextAlert(before, { reason, spike, ...told, ...muted, hasAdvice, nowMs });
      const alert = move(held, record, fingerprint, false);
      const advice = { state: standing.state, text: null, reason: null };
      const message = buildMessage({ alertId: alert.id, fingerprint, alert: record, reason, spike, advice });
      emit(alert, message, { ...told, alert: before }, nowMs);
    }
  }

  return {
    alerts,
    said,
    tick(spikes: readonly AlertSpike[], scene: Scene): void {
      raiseGroups(spikes, scene);
      for (const spike of spikes) raise(spike, scene);
    },
    acknowledge(alert: HeldAlert, atMs: number): void {
      const before = alert.record;
      if (before.state !== "firing") return;
      const act = { by: "alice", note: null, atMs };
      const transitions = acknowledge(before, act);
      const transition = transitions.length;
      alert.record = { ...before, state: "acknowledged", transition, transitions };
      const channels = [...toldChannels(before)];
      emit(alert, toAcknowledgedMessage(alert.message, transition, act), { channels, alert: before }, atMs);
    },
    resolve(alert: HeldAlert, atMs: number): void {
      if (!isOpen(alert)) return;
      const before = alert.record;
      const act = { by: "alice", note: null, atMs };
      const { alert: record, channels } = resolveByHand(before, act);
      alert.record = record;
      emit(alert, toResolvedMessage(alert.message, record, act), { channels, alert: before }, atMs);
      for (const member of alert.message.members ?? []) {
        const own = newest(fingerprintOf({ kind: "spike", ...member }));
        if (own !== undefined && isOpen(own) && toldChannels(own.record).size === 0)
          own.record = resolveByHand(own.record, act).alert;
      }
    },
  };
}

export type PureService = ReturnType<typeof createPureService>;
