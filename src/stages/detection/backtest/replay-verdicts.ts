import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type ActionClass, SOURCE_KINDS, VERDICT_LOOKS } from "#model/kinds.ts";
import { type RequestDetails } from "#model/request-facts.ts";
import {
  isSureAttack,
  LOOK_AFTER_MS,
  MOST_EVENTS,
  MOST_RECORDS,
  type StoredVerdict,
} from "#model/verdict.ts";
import { type SourceEvent, sourceKeyOf } from "../sources/source-event.ts";
import { changesAction } from "../verdict/changes-action.ts";
import { spread } from "../verdict/counting.ts";
import type { UsualValues, VerdictEvent, VerdictEvidence } from "../verdict/evidence.ts";
import { templateOf } from "../verdict/path-template.ts";
import { createNearbyRules } from "./nearby-rules.ts";
import { createUsualReplay } from "./replay-usual.ts";
import type { ReplayedMessage } from "./replayed-message.ts";

/** An event with what the detectors do not read. What is left out is not known. */
export interface RecordedEvent extends SourceEvent {
  readonly action?: ActionClass;
  /** Epoch ms. Left out: the beginning of the minute. */
  readonly at?: number;
  readonly logId?: string;
  readonly request?: RequestDetails;
}

/** Alerts that wait for a look. In a flood of alerts the first ones have no later look. */
const MOST_ALERTS = 100;
/** The first and the last hours of an alert, which show whether it lasts. The first ones hold the events that opened it. */
const COMPARED_MS = 2 * HOUR_MS;
const LEAD_MS = 15 * MINUTE_MS;

interface Kept {
  readonly source: SourceEvent;
  readonly event: VerdictEvent;
  readonly request: RequestDetails | undefined;
}

interface JudgedAlert {
  readonly openedAt: number;
  /** Null for an incident. */
  readonly ruleId: string | null;
  /** The attackers so far. */
  readonly keys: Set<string>;
  readonly usual: UsualValues;
  /** The oldest first; at most twice as many as are judged. */
  events: Kept[];
  /** Number of events of the first hours. */
  first: number;
  looks: number;
  /** Whether a look was all but certain of an attack. */
  isSure: boolean;
  /** The latest message. */
  message: ReplayedMessage;
  verdict: StoredVerdict | null;
}

/**
 * Judges the alerts of a replayed zone at each look with the evidence that the service would have: the events so far, and what
 * was usual before the day of the alert.
 */
export function createVerdictReplay(judge: (evidence: VerdictEvidence) => StoredVerdict) {
  const usual = createUsualReplay();
  const nearby = createNearbyRules();
  const alerts = new Map<number, JudgedAlert>();
  let hour: Kept[] = [];
  let taken = 0;

  function take(source: RecordedEvent, minute: number): void {
    const { ruleId, ip, asn, ja4, ua, url, at = minute * MINUTE_MS, request } = source;
    taken += 1;
    const logId = source.logId ?? String(taken);
    const texts = { ip: ip ?? "", asn: asn ?? "", ja4: ja4 ?? "", ua: ua ?? "", url: url ?? "" };
    const facts = source.request ?? null;
    const event = { at, logId, ruleId: ruleId ?? "", action: source.action ?? "other", facts, ...texts };
    const kept: Kept = { source, event, request };
    const template = templateOf(event.url);
    usual.take(event, template, request?.hasSession === true);
    nearby.take({ ip: event.ip, ruleId: event.ruleId, template }, at);
    hour.push(kept);
    if (taken % 10_000 === 0) hour = hour.filter((one) => one.event.at >= at - HOUR_MS);
    for (const alert of alerts.values()) if (isOf(alert, kept)) add(alert, kept);
  }

  /** Returns the message with the verdict of its alert. The first message of an alert has it judged. */
  function follow(message: ReplayedMessage): ReplayedMessage {
    const { at, incident, reason, subject, attackers, rules } = message;
    if (reason === "late" || subject === "flip" || subject === "silent") return message;
    const openedAt = at * MINUTE_MS;
    const ruleId = subject === "rule" ? (rules[0] ?? "") : null;
    const none = { keys: new Set<string>(), events: [], first: 0, looks: 0, isSure: false, verdict: null };
    const alert: JudgedAlert = alerts.get(incident) ?? {
      ...none,
      openedAt,
      ruleId,
      usual: usual.read(),
      message,
    };
    alert.message = message;
    if (reason !== "resolved") {
      const had = new Set(alert.events);
      for (const { kind, key } of attackers) alert.keys.add(`${kind}=${key}`);
      for (const kept of hour)
        if (kept.event.at >= openedAt - HOUR_MS && isOf(alert, kept) && !had.has(kept)) add(alert, kept);
    }
    if (alert.verdict === null) {
      alert.verdict = judgeAt(alert, at);
      alerts.set(incident, alert);
      const [oldest] = alerts.keys();
      if (alerts.size > MOST_ALERTS && oldest !== undefined) alerts.delete(oldest);
    }
    return shown(alert, message);
  }

  /** Returns a message for each look up to the end of a minute after which a person would do something else. */
  function lookUntil(minute: number): ReplayedMessage[] {
    const messages: ReplayedMessage[] = [];
    for (const [incident, alert] of alerts) {
      for (const look of VERDICT_LOOKS.slice(alert.looks + 1)) {
        const at = (alert.openedAt + LOOK_AFTER_MS[look]) / MINUTE_MS;
        if (at > minute) break;
        alert.looks += 1;
        const before = alert.verdict;
        alert.verdict = judgeAt(alert, at);
        if (changesAction(before, alert.verdict))
          messages.push(shown(alert, { ...alert.message, at, reason: "verdict" }));
      }
      if (alert.looks === VERDICT_LOOKS.length - 1) alerts.delete(incident);
    }
    return messages;
  }

  function judgeAt(alert: JudgedAlert, minute: number): StoredVerdict {
    const judgedAt = minute * MINUTE_MS;
    const { openedAt, ruleId } = alert;
    const since = openedAt - HOUR_MS;
    const kept = alert.events.slice(-MOST_EVENTS).toReversed();
    const recent = alert.events.filter(({ event }) => event.at >= judgedAt - COMPARED_MS).length;
    const lasting = alert.first === 0 ? null : recent / Math.min(alert.first, MOST_EVENTS);
    const recorded = kept.flatMap(({ event, request }) =>
      request === undefined ? [] : [[event.logId, request] as const],
    );
    const { hasCookies } = usual.read();
    const verdict = judge({
      look: VERDICT_LOOKS[alert.looks] ?? "day",
      judgedAt,
      openedAt,
      since,
      ruleId,
      events: kept.map(({ event }) => event),
      nearby: nearby.read(new Set(kept.map(({ event }) => event.ip)), judgedAt),
      requests: new Map(spread(recorded, MOST_RECORDS)),
      usual: { ...alert.usual, hasCookies },
      crawler: null,
      lasting: alert.looks < 2 ? null : lasting,
    });
    alert.isSure ||= isSureAttack(verdict);
    return verdict;
  }

  return { take, follow, lookUntil };
}

/** A sure attack makes an alert critical; a new rule's burst stays news. */
function shown({ verdict, isSure }: JudgedAlert, message: ReplayedMessage): ReplayedMessage {
  const severity = isSure && message.severity !== "info" ? "critical" : message.severity;
  return verdict === null ? message : { ...message, severity, verdict };
}

function isOf({ ruleId, keys, message }: JudgedAlert, { source, event }: Kept): boolean {
  if (ruleId !== null) return event.ruleId === ruleId;
  // Of attackers that are over, what others do later is left out.
  if (message.reason === "resolved") return false;
  return SOURCE_KINDS.some((kind) => keys.has(`${kind}=${sourceKeyOf(kind, source)}`));
}

function add(alert: JudgedAlert, kept: Kept): void {
  const { at } = kept.event;
  alert.events.push(kept);
  if (at >= alert.openedAt - LEAD_MS && at < alert.openedAt - LEAD_MS + COMPARED_MS) alert.first += 1;
  if (alert.events.length > 2 * MOST_EVENTS) alert.events = alert.events.slice(-MOST_EVENTS);
}
