import { isDeepStrictEqual } from "node:util";
import { findWas, notifiedChannels, toNotifications } from "#alerts/rules/alert-history.ts";
import {
  type AlertRecord,
  parseDetails,
  type Recipients,
  toAlertRecord,
} from "#alerts/rules/alert-record.ts";
import { type AlertSpike, toAlertSpike } from "#alerts/rules/alert-spike.ts";
import type { Assess, Assessment, Context } from "#alerts/rules/assess.ts";
import { type Decision, decide } from "#alerts/rules/decide.ts";
import { alertOf } from "#alerts/rules/decide-all.ts";
import { buildMessage } from "#alerts/rules/message/build-message.ts";
import { describeIncident } from "#alerts/rules/message/describe-incident.ts";
import { describeDisagreement } from "#alerts/rules/message/headline.ts";
import { addLinks } from "#alerts/rules/message/links.ts";
import { gradeByVerdict, toSituation } from "#alerts/rules/verdict-effects.ts";
import { readAdviceText } from "#db/alerts/advice.ts";
import {
  type AlertRow,
  changeAlert,
  describeAlert,
  describeAlerts,
  insertAlerts,
  insertNotifications,
  lockSpike,
  lockSpikes,
  readNewestAlerts,
  type SpikeRow,
} from "#db/alerts/alerts.ts";
import { readSubjectMarks } from "#db/alerts/marks.ts";
import type { Database, Queryable } from "#db/client.ts";
import { readLearning } from "#db/detection/judged-hours.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { pickSame, REMEMBERED_MS } from "#detection/rules/verdict/judge-verdict.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { NotifyReason } from "#model/kinds.ts";
import { describeMarksBefore } from "#model/words.ts";

/** A spike and, if it is an incident, the spikes of the rules that are part of it. */
interface ToRaise {
  readonly assessment: Assessment;
  readonly members: readonly AlertSpike[];
}

/** A spike as it was read, and the spikes that are part of its alert. */
export interface GivenSpike {
  readonly spike: AlertSpike;
  readonly members: readonly AlertSpike[];
}

/**
 * Writes the transitions of one spike's alert under the spike's lock. Returns their reasons: usually one, two for a spike
 * that was over before its alert was raised.
 */
export function raiseSpike(
  database: Database,
  given: GivenSpike,
  context: Context,
  assess: Assess,
): Promise<NotifyReason[]> {
  const { spike, members } = given;
  return inTransaction(database, async ({ tx }) => {
    const stored = await lockSpike(tx, spike.id);
    if (stored === null) return [];
    const assessment = assessStored(stored, given, context, assess);
    const fingerprint = alertOf(assessment.spike);
    const reasons: NotifyReason[] = [];
    for (;;) {
      const row = (await readNewestAlerts(tx, [fingerprint])).get(fingerprint) ?? null;
      const reason = await advance(tx, row, { assessment, members }, context);
      if (reason === null) return reasons;
      reasons.push(reason);
    }
  });
}

/** Assesses a spike as it is now. What it takes from other spikes, such as its lead's end, is what was read of them before. */
function assessStored(
  stored: SpikeRow,
  { spike: { closedAtMs }, members }: GivenSpike,
  { routing, verdicts }: Context,
  assess: Assess,
): Assessment {
  const spike = toAlertSpike(stored, routing.zones);
  const goesOn = spike.kind !== "sources" && members.some((member) => member.closedAtMs === null);
  const ended = spike.memberOf == null ? spike.closedAtMs : (spike.closedAtMs ?? closedAtMs);
  const own = verdicts?.get(stored.id) ?? [];
  const graded = { ...spike, closedAtMs: goesOn ? null : ended };
  return assess(gradeByVerdict(graded, own, { effects: routing.verdict, members }));
}

/** Returns whether an alert is raised that no channel is notified of. */
export function isUnsent(decision: Decision | null): decision is Decision {
  return decision?.reason === "first" && decision.notified.length + decision.updated.length === 0;
}

/**
 * Writes alerts of open spikes that no channel is notified of, in a few statements and under the spikes' locks, because an
 * incident may have thousands of members. What is to be written for a spike by now may be another transition: that is left
 * to the next run. Returns the number of alerts.
 */
export function raiseUnsent(
  database: Database,
  spikes: readonly AlertSpike[],
  context: Context,
  assess: Assess,
): Promise<number> {
  return inTransaction(database, async ({ tx }) => {
    const given = new Map(spikes.map((spike) => [spike.id, spike]));
    const assessed = (await lockSpikes(tx, [...given.keys()])).flatMap((stored) => {
      const spike = given.get(stored.id);
      return spike === undefined ? [] : assessStored(stored, { spike, members: [] }, context, assess);
    });
    const known = await readNewestAlerts(
      tx,
      assessed.map(({ spike }) => alertOf(spike)),
    );
    const unsent = assessed.flatMap((assessment) => {
      const fingerprint = alertOf(assessment.spike);
      if (assessment.spike.closedAtMs !== null || known.has(fingerprint)) return [];
      const decision = decide(toSituation(assessment, null), context);
      return isUnsent(decision) ? [{ fingerprint, assessment, decision }] : [];
    });
    const ids = await insertAlerts(
      tx,
      unsent.map(({ fingerprint, assessment: { spike }, decision }) =>
        toStored(decision.alert, { ...spike, fingerprint }),
      ),
    );
    const described: Parameters<typeof describeAlerts>[1][number][] = [];
    for (const { fingerprint, assessment, decision } of unsent) {
      const id = ids.get(fingerprint);
      if (id === undefined) continue;
      const message = await toMessage(tx, id, { assessment, members: [], decision }, context);
      described.push({ id, details: { message } });
    }
    await describeAlerts(tx, described);
    return described.length;
  });
}

/** Writes the next transition and returns its reason; null if there is none. */
async function advance(
  tx: Queryable,
  row: AlertRow | null,
  { assessment, members }: ToRaise,
  context: Context,
): Promise<NotifyReason | null> {
  const { spike } = assessment;
  const before = row === null ? null : toAlertRecord(row);
  const decision = decide(toSituation(assessment, before), context);
  if (decision === null) {
    if (row !== null && before !== null && isOutdated(row, before, { assessment, members }))
      await refreshDetails(tx, row, before, { assessment, members }, context);
    return null;
  }
  const { alert, reason } = decision;
  const { kind, zoneId, ruleId } = spike;
  const identity = { fingerprint: alertOf(spike), kind, zoneId, ruleId };
  const was = before === null ? undefined : findWas(before, spike.id, assessment.ownVerdicts);
  const compose = (alertId: number) =>
    toMessage(tx, alertId, { assessment, members, decision, was }, context);
  const change = { row, before, alert, reason, recipients: decision, identity, toMessage: compose };
  return (await persistTransition(tx, change)) ? reason : null;
}

interface NewTransition {
  /** The alert as it was read; null if there was none. */
  readonly row: AlertRow | null;
  readonly before: AlertRecord | null;
  /** The alert after the transition. */
  readonly alert: AlertRecord;
  readonly reason: NotifyReason;
  readonly recipients: Partial<Recipients>;
  readonly identity: Pick<AlertRow, "fingerprint" | "kind" | "zoneId" | "ruleId">;
  readonly toMessage: (alertId: number) => AlertMessage | Promise<AlertMessage>;
}

/** Returns the row of an alert. */
function toStored(
  { state, transition, spikeId, firedAtMs, resolvedAtMs, transitions }: AlertRecord,
  { fingerprint, kind, zoneId, ruleId }: NewTransition["identity"],
) {
  const resolvedAt = resolvedAtMs === null ? null : new Date(resolvedAtMs);
  const identity = { fingerprint, kind, zoneId, ruleId };
  const firedAt = new Date(firedAtMs);
  return { ...identity, state, transition, transitions: [...transitions], spikeId, resolvedAt, firedAt };
}

/** Writes a transition, its message and its outbox rows. Returns false if the alert has moved since it was read. */
export async function persistTransition(tx: Queryable, change: NewTransition): Promise<boolean> {
  const { row, before, alert, reason, recipients, identity, toMessage } = change;
  const { firedAt, ...stored } = toStored(alert, identity);
  const alertId =
    row === null || reason === "first"
      ? (await insertAlerts(tx, [{ ...stored, firedAt }])).get(identity.fingerprint)
      : (await changeAlert(tx, row, stored))
        ? row.id
        : undefined;
  if (alertId === undefined) return false;
  const message = await toMessage(alertId);
  await describeAlert(tx, alertId, { details: { message }, spikeId: alert.spikeId });
  await insertNotifications(tx, toNotifications(message, recipients, before));
  return true;
}

async function toMessage(
  tx: Queryable,
  alertId: number,
  {
    assessment,
    members,
    decision: { alert, reason },
    was,
  }: ToRaise & { readonly decision: Decision; readonly was?: string | undefined },
  { routing, nowMs, notes, actions }: Context,
): Promise<AlertMessage> {
  const { spike, ownVerdicts } = assessment;
  const advice = await readAdvice(tx, assessment);
  const fingerprint = alertOf(spike);
  const verdict = ownVerdicts.at(-1);
  const marked = verdict === undefined ? "" : await describeMarks(tx, spike, nowMs);
  const learningUntilMs = (await readLearning(tx, [spike.zoneId], nowMs)).get(spike.zoneId);
  const facts = {
    alertId,
    fingerprint,
    alert,
    reason,
    spike,
    advice,
    members,
    verdict,
    was,
    learningUntilMs,
    notes,
    actions,
  };
  const message = buildMessage({ ...facts, ...(marked !== "" && { marked }) });
  return addLinks(message, routing.links, nowMs);
}

/**
 * Returns whether the counts of an alert are refreshed. Of rules that is so only if a channel was notified, because a flood
 * has thousands of other alerts.
 */
function isCounted({ spike }: Assessment, alert: AlertRecord): boolean {
  return spike.closedAtMs === null && (spike.kind === "sources" || notifiedChannels(alert).size > 0);
}

/** Returns whether the details of an open alert lack a new spike, new counts, a verdict or a new state of the advice. */
export function isOutdated(row: AlertRow, alert: AlertRecord, { assessment, members }: ToRaise): boolean {
  if (alert.state === "resolved") return false;
  const { spike, advice, ownVerdicts } = assessment;
  const { message } = parseDetails(row.details);
  const look = ownVerdicts.at(-1)?.look;
  return (
    alert.spikeId !== spike.id ||
    message?.advice.state !== advice.state ||
    message.advice.reason !== advice.reason ||
    (look !== undefined && message.verdict?.look !== look) ||
    (isCounted(assessment, alert) &&
      (message.count !== spike.windowCount ||
        message.peak !== spike.peak ||
        (message.members?.length ?? 0) !== members.length ||
        (spike.sources != null && !isDeepStrictEqual(message.attackers, describeIncident(spike).attackers))))
  );
}

/** Updates the details of an open alert without a transition. */
async function refreshDetails(
  tx: Queryable,
  row: AlertRow,
  alert: AlertRecord,
  { assessment, members }: ToRaise,
  { nowMs, notes, actions }: Context,
): Promise<void> {
  const { spike } = assessment;
  const learningUntilMs = (await readLearning(tx, [spike.zoneId], nowMs)).get(spike.zoneId);
  const { message } = parseDetails(row.details);
  const advice = await readAdvice(tx, assessment);
  const { id: alertId, fingerprint } = row;
  const refresh = (stored: AlertMessage): AlertMessage => {
    const verdict = assessment.ownVerdicts.at(-1) ?? stored.verdict;
    if (!isCounted(assessment, alert)) {
      const disagreement = describeDisagreement(advice, verdict);
      return { ...stored, advice, verdict, disagreement };
    }
    const { reason, links } = stored;
    const facts = { alertId, fingerprint, alert, reason: "first", spike, advice, members, verdict } as const;
    const built = buildMessage({ ...facts, learningUntilMs, notes, actions });
    return { ...built, reason, links, marked: stored.marked, was: stored.was };
  };
  const details = message === null ? row.details : { message: refresh(message) };
  await describeAlert(tx, row.id, { details, spikeId: spike.id });
}

/** Returns how people marked the same rule and path, or the same attacker, before; empty if nobody did. */
async function describeMarks(tx: Queryable, spike: AlertSpike, nowMs: number): Promise<string> {
  const { zoneId, ruleId, id: spikeId, openedAtMs } = spike;
  const alert = { zoneId, ruleId, spikeId, firedAt: new Date(openedAtMs), resolvedAt: null };
  return describeMarksBefore(pickSame(await readSubjectMarks(tx, alert, nowMs - REMEMBERED_MS))).join(" ");
}

async function readAdvice(
  tx: Queryable,
  { spike, advice: { state, reason, askedAtMs } }: Assessment,
): Promise<AlertMessage["advice"]> {
  const { zoneId, ruleId } = spike;
  const text = askedAtMs === null ? null : await readAdviceText(tx, { zoneId, ruleId, askedAtMs });
  return { state, text, reason };
}
