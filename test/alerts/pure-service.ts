import {
  acknowledge,
  resolveByHand,
  toAcknowledgedMessage,
  toResolvedMessage,
} from "#alerts/rules/act-on-alert.ts";
import { notifiedChannels, toNotifications } from "#alerts/rules/alert-history.ts";
import type { AlertRecord } from "#alerts/rules/alert-record.ts";
import type { AlertSpike } from "#alerts/rules/alert-spike.ts";
import { type Context, createAssessor } from "#alerts/rules/assess.ts";
import { decide } from "#alerts/rules/decide.ts";
import { alertOf, endTogether, findDeciding, findTakeOvers } from "#alerts/rules/decide-all.ts";
import { buildMessage } from "#alerts/rules/message/build-message.ts";
import { toSituation } from "#alerts/rules/verdict-effects.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import type { NotifyReason } from "#model/kinds.ts";

export interface PureAlert {
  readonly id: number;
  readonly fingerprint: string;
  record: AlertRecord;
  message: AlertMessage;
}

export type Said = ReturnType<typeof toNotifications>[number] & { readonly atMs: number };

/** The decisions of raise-alerts and of the people over arrays instead of tables; nothing fails and nothing is lost. */
export function createPureService() {
  const alerts: PureAlert[] = [];
  const said: Said[] = [];
  /** The alerts of rules that incidents have taken over, by the id of the incident's spike. */
  const taken = new Map<number, string>();
  const newest = (fingerprint: string) => alerts.findLast((alert) => alert.fingerprint === fingerprint);
  const isOpen = ({ record }: PureAlert) => record.state !== "resolved";

  /** The alert that the next transition is of: a new one where it is the first. */
  function move(before: PureAlert | undefined, record: AlertRecord, fingerprint: string): PureAlert {
    if (before !== undefined && record.transition > 1) return Object.assign(before, { record });
    if (before !== undefined && isOpen(before)) throw new Error("a second open alert of one fingerprint");
    const alert = {
      id: alerts.length + 1,
      fingerprint,
      record,
      message: null as unknown as AlertMessage,
    };
    alerts.push(alert);
    return alert;
  }

  function emit(
    alert: PureAlert,
    message: AlertMessage,
    recipients: Parameters<typeof toNotifications>[1],
    before: AlertRecord | null,
    atMs: number,
  ): void {
    alert.message = message;
    for (const row of toNotifications(message, recipients, before)) said.push({ ...row, atMs });
  }

  /** Lets incidents go on with the alerts of rules that they explain. */
  function takeOver(found: readonly AlertSpike[]): AlertSpike[] {
    const known = found.map((spike) => ({ ...spike, takesOver: taken.get(spike.id) ?? null }));
    for (const { spike, member } of findTakeOvers(
      known,
      (one) => newest(fingerprintOf(one))?.record ?? null,
    )) {
      const held = newest(fingerprintOf(member));
      if (held === undefined) continue;
      held.record = { ...held.record, spikeId: spike.id };
      taken.set(spike.id, held.fingerprint);
    }
    return known.map((spike) => ({ ...spike, takesOver: taken.get(spike.id) ?? null }));
  }

  /** Applies every transition of one spike's alert. */
  function raise(spike: AlertSpike, members: readonly AlertSpike[], context: Context): void {
    const fingerprint = alertOf(spike);
    const assessment = createAssessor(context)(spike);
    const build = (alertId: number, alert: AlertRecord, reason: NotifyReason) => {
      const advice = { state: assessment.advice.state, text: null, reason: null };
      return buildMessage({ alertId, fingerprint, alert, reason, spike, advice, members });
    };
    for (let count = 0; ; count += 1) {
      if (count > 20) throw new Error("never done");
      const held = newest(fingerprint);
      const before = held?.record ?? null;
      const decision = decide(toSituation(assessment, before), context);
      if (decision === null) {
        if (held === undefined || before?.state === "resolved" || spike.closedAtMs !== null) return;
        const { attackers, members: known } = build(held.id, held.record, "first");
        held.message = {
          ...held.message,
          ...(attackers === undefined ? {} : { attackers }),
          ...(known === undefined ? {} : { members: known }),
        };
        return;
      }
      const { alert: record, reason } = decision;
      const alert = move(held, record, fingerprint);
      emit(alert, build(alert.id, record, reason), decision, before, context.nowMs);
    }
  }

  return {
    alerts,
    said,
    tick(read: readonly AlertSpike[], context: Context): void {
      const found = endTogether(read, context.nowMs);
      const membersOf = Map.groupBy(found, ({ memberOf }) => memberOf ?? null);
      for (const spike of findDeciding(takeOver(found))) raise(spike, membersOf.get(spike.id) ?? [], context);
    },
    acknowledge(alert: PureAlert, atMs: number): void {
      const before = alert.record;
      if (before.state !== "firing") return;
      const act = { by: "alice", note: null, atMs };
      const transitions = acknowledge(before, act);
      const transition = transitions.length;
      alert.record = { ...before, state: "acknowledged", transition, transitions };
      const notified = [...notifiedChannels(before)];
      emit(alert, toAcknowledgedMessage(alert.message, transition, act), { notified }, before, atMs);
    },
    resolve(alert: PureAlert, atMs: number): void {
      if (!isOpen(alert)) return;
      const before = alert.record;
      const act = { by: "alice", note: null, atMs };
      const { alert: record, channels } = resolveByHand(before, act, alert.message);
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
