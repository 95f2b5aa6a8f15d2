import type { Queryable } from "#db/client.ts";
import { HOUR_MS } from "#lib/units.ts";
import { attackerIdOf } from "#model/attacker.ts";
import { digest } from "#model/fingerprint.ts";
import { zoneFactsOf } from "#model/zones.ts";
import { NOBODY, nextAlert } from "#stages/alerting/alert-record.ts";
import { addLinks } from "#stages/alerting/message/add-links.ts";
import { buildLateMessage } from "#stages/alerting/message/late-message.ts";
import { planRoute } from "#stages/alerting/routing/plan-route.ts";
import { findSilence } from "#stages/alerting/silence.ts";
import { toIncidentRow } from "#stages/detection/incidents/stored-incident.ts";
import { persistTransition } from "../alerting/persist-transition.ts";
import { readActiveSilences } from "../alerting/read-active-silences.ts";
import type { JudgeLateDeps, LateHours } from "./late-hours.ts";

const NO_EVIDENCE = { grown: [], rules: [], events: 0, isMasked: false, known: 0 };

/**
 * Writes the alert about the attackers and rules of late hours. It is resolved from the beginning, so that nobody is paged.
 * An active attack has its own alert. Writes none if nothing is new. Returns whether a channel is notified. The hours
 * before a first start are only listed; sources in shadow mode, and the `small` rules that few addresses lift, are not even that.
 */
export async function raiseLate(
  tx: Queryable,
  { routing, log }: Pick<JudgeLateDeps, "routing" | "log">,
  { zoneId, span, news, isHistory, isShadow, nowMs }: LateHours,
  small: ReadonlySet<string>,
): Promise<boolean> {
  const newAttackers = isShadow ? [] : news.newAttackers;
  const newRules = news.newRules.filter(({ ruleId }) => !small.has(ruleId));
  if (newAttackers.length + newRules.length === 0) return false;
  const { links, zones, ...routes } = routing();
  const subject = { kind: "late", zoneId, ruleId: null, severity: "info" } as const;
  const silences = await readActiveSilences(tx, log, nowMs);
  const silencedBy = findSilence(silences, subject, nowMs)?.id ?? null;
  const isNotified = !isHistory && silencedBy === null;
  const recipients = {
    ...NOBODY,
    notified: isNotified ? planRoute({ links, ...routes }, subject, nowMs).channels : [],
  };
  const openedAtMs = span.from * HOUR_MS;
  const occurrence = { id: null, severity: subject.severity, openedAtMs };
  const mute = { silencedBy, mutedBy: null };
  const fired = nextAlert(null, { reason: "first", occurrence, recipients, nowMs, mute });
  const state = "resolved" as const;
  const transitions = fired.transitions.map((one) => ({ ...one, state }));
  const alert = { ...fired, state, transitions, resolvedAtMs: nowMs };
  const fingerprint = digest([subject.kind, zoneId, openedAtMs, nowMs]);
  const through = { judgedThrough: span.to * 60, countedTo: span.to * 60, closedAt: span.to * 60, nowMs };
  const message = {
    fingerprint,
    alert,
    zone: zoneFactsOf(zones, zoneId),
    zoneId,
    from: isHistory ? span.from * 60 : span.fromMinute,
    to: isHistory ? span.to * 60 : span.toMinute,
    isHistory,
    incidents: news.incidents.map(({ incident }) => toIncidentRow(incident, NO_EVIDENCE, through).sources),
    isActive: (attacker: Parameters<typeof attackerIdOf>[0]) => {
      const id = attackerIdOf(attacker);
      return newAttackers.some((one) => attackerIdOf(one) === id) ? news.active.has(id) : null;
    },
    newRules,
    activeRules: newRules.filter(({ ruleId }) => news.active.has(ruleId)).length,
  };
  const identity = { fingerprint, kind: subject.kind, zoneId, ruleId: null };
  return (
    (await persistTransition(tx, {
      row: null,
      before: null,
      alert,
      reason: "first",
      recipients,
      identity,
      toMessage: (alertId) => addLinks(buildLateMessage({ ...message, alertId }), links, nowMs),
    })) && recipients.notified.length > 0
  );
}
