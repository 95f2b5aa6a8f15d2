import { NOBODY, nextAlert, parseDetails, toAlertRecord, toResolved } from "#alerts/rules/alert-record.ts";
import { buildLateMessage } from "#alerts/rules/message/late-message.ts";
import { addLinks } from "#alerts/rules/message/links.ts";
import { planRoute } from "#alerts/rules/routing/plan-route.ts";
import { findSilence } from "#alerts/rules/silence.ts";
import { readWaitingAlerts } from "#db/alerts/alerts.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { JudgedHour } from "#db/detection/judged-hours.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { LateNews, LateSpan } from "#detection/rules/find-late.ts";
import { toIncidentRow } from "#detection/rules/incidents/stored-incident.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { attackerIdOf, digest } from "#model/fingerprint.ts";
import type { KnownSources } from "#model/known-source.ts";
import { zoneFactsOf } from "#model/zones.ts";
import { persistTransition } from "../alerts/raise-spike.ts";
import { readActiveSilences } from "../alerts/report-service.ts";
import type { JobContext } from "../context.ts";

const NO_EVIDENCE = { grown: [], rules: [], events: 0, isMasked: false, known: 0 };

/** A message that waits for the end of quiet hours for longer than this is not sent. */
const WAITING_MS = 3 * DAY_MS;

export type JudgeLateDeps = Pick<
  JobContext,
  | "database"
  | "clock"
  | "log"
  | "zoneIds"
  | "sensitivity"
  | "lowestFloor"
  | "sourceMode"
  | "knownSources"
  | "settingsOf"
  | "routing"
  | "afterAlerts"
>;

/** Hours of a zone that were judged late, and what is to be stored of them. */
export interface LateHours {
  readonly zoneId: number;
  readonly span: LateSpan;
  readonly news: LateNews;
  /** Whether the hours were before the first start: nothing is sent. */
  readonly isHistory: boolean;
  readonly isShadow: boolean;
  readonly known: KnownSources;
  readonly judged: readonly JudgedHour[];
  readonly nowMs: number;
}

type RaiseLateDeps = Pick<JudgeLateDeps, "routing" | "log">;

/** Returns which channels a message about late hours is sent to, now and after their quiet hours. */
async function planMessage(db: Queryable, { routing, log }: RaiseLateDeps, zoneId: number, nowMs: number) {
  const subject = { kind: "late", zoneId, ruleId: null, severity: "info" } as const;
  const silences = await readActiveSilences(db, log, nowMs);
  const { channels, held } = planRoute(routing(), subject, nowMs);
  return { subject, channels, held, silencedBy: findSilence(silences, subject, nowMs)?.id ?? null };
}

/**
 * Sends messages about late hours to the channels whose quiet hours are over since. raise-alerts, which does so for other
 * alerts, looks at no alert that is resolved. Returns whether a channel is notified. Of two replicas one writes the rows.
 */
export async function releaseLate(database: Database, deps: RaiseLateDeps, nowMs: number): Promise<boolean> {
  let isNotified = false;
  for (const row of await readWaitingAlerts(database.db, {
    kind: "late",
    resolvedAfterMs: nowMs - WAITING_MS,
  })) {
    const { message } = parseDetails(row.details);
    if (message === null || row.zoneId === null) continue;
    const before = toAlertRecord(row);
    const waiting = before.transitions.at(-1)?.held ?? [];
    const { subject, channels, held, silencedBy } = await planMessage(database.db, deps, row.zoneId, nowMs);
    const notified = waiting.filter((channel) => silencedBy === null && channels.includes(channel));
    if (notified.length === 0) continue;
    const reason = "repeat" as const;
    const recipients = { ...NOBODY, notified };
    const occurrence = { id: null, severity: subject.severity, openedAtMs: before.firedAtMs };
    const left = waiting.filter((channel) => held.includes(channel));
    const next = nextAlert(before, { reason, occurrence, recipients, nowMs, held: left });
    const alert = toResolved(next, before.resolvedAtMs);
    const toMessage = () => ({ ...message, reason, transition: alert.transition });
    const change = { row, before, alert, reason, recipients, identity: row, toMessage } as const;
    isNotified = (await inTransaction(database, ({ tx }) => persistTransition(tx, change))) || isNotified;
  }
  return isNotified;
}

/**
 * Writes the alert about the attackers and rules of late hours; none if nothing is new. An active attack has its own alert.
 * Returns whether a channel is notified. The hours before a first start are only listed; sources in shadow mode, and the
 * `small` rules that few addresses lift, are not even that.
 */
export async function raiseLate(
  tx: Queryable,
  deps: RaiseLateDeps,
  { zoneId, span, news, isHistory, isShadow, nowMs }: LateHours,
  small: ReadonlySet<string>,
): Promise<boolean> {
  const newAttackers = isShadow ? [] : news.newAttackers;
  const newRules = news.newRules.filter(({ ruleId }) => !small.has(ruleId));
  if (newAttackers.length + newRules.length === 0) return false;
  const { links, zones } = deps.routing();
  const { subject, channels, held, silencedBy } = await planMessage(tx, deps, zoneId, nowMs);
  const isNotified = !isHistory && silencedBy === null;
  const recipients = { ...NOBODY, notified: isNotified ? channels : [] };
  const openedAtMs = span.from * HOUR_MS;
  const occurrence = { id: null, severity: subject.severity, openedAtMs };
  const mute = { silencedBy, mutedBy: null };
  const first = { reason: "first", occurrence, recipients, nowMs, mute } as const;
  const alert = toResolved(nextAlert(null, { ...first, held: isNotified ? held : [] }), nowMs);
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
