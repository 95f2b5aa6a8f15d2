import { many, showTime } from "#lib/format.ts";
import { cutText } from "#lib/text.ts";
import { type ActionStates, BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { describeLimit, describeQuery } from "#model/custom-condition.ts";
import { episodeKeyOf } from "#model/fingerprint.ts";
import type { NotifyReason } from "#model/kinds.ts";
import { describeLearning } from "#model/rules.ts";
import { isSureAttack, type StoredVerdict } from "#model/verdict.ts";
import { describeNoteBefore, isGraver, isPersons, type Note, toReason } from "#model/words.ts";
import type { AlertRecord } from "../alert-record.ts";
import { type AlertSpike, ruleTitle } from "../alert-spike.ts";
import { exclusionOf, LONGWATCH, silenceChoices, silenceCommand } from "./commands.ts";
import { describeIncident } from "./describe-incident.ts";
import { describeDisagreement, detailsOfChanges, headlineOf } from "./headline.ts";

/** The names of unknown actions that a message shows. */
const MOST_ACTIONS = 3;
const MAX_ACTION_CHARS = 40;

export interface MessageFacts {
  readonly alertId: number;
  readonly fingerprint: string;
  /** After the transition. */
  readonly alert: AlertRecord;
  readonly reason: NotifyReason;
  readonly spike: AlertSpike;
  readonly advice: AlertMessage["advice"];
  readonly verdict?: StoredVerdict | AlertMessage["verdict"];
  /** The title of the verdict that was sent before, if the class has changed since. */
  readonly was?: string | undefined;
  readonly marked?: AlertMessage["marked"];
  /** Spikes of the rules that are part of an incident. */
  readonly members?: readonly AlertSpike[];
  /** The end of the zone's first day, epoch ms; left out after it. */
  readonly learningUntilMs?: number | undefined;
  /** Notes of the day before. */
  readonly notes?: readonly Note[] | undefined;
  /** Default: the built-in words. */
  readonly actions?: ActionStates | undefined;
}

/**
 * Returns the message of one transition. Texts of the evidence and of the recommendation stay hostile: channels neutralise
 * them.
 */
export function buildMessage(facts: MessageFacts): AlertMessage {
  const {
    alertId,
    fingerprint,
    alert,
    reason,
    spike,
    advice,
    members = [],
    verdict,
    was,
    marked,
    learningUntilMs,
    notes = [],
    actions: { classify } = BUILT_IN_ACTIONS,
  } = facts;
  const { windowMinutes, windowCount: count, baseline: usual, threshold, score, peak, evidence } = spike;
  const { top, sparkline } = evidence;
  return alertMessage.parse({
    alertId,
    fingerprint,
    dedupeKey: episodeKeyOf({ fingerprint, firedAtMs: alert.firedAtMs }),
    transition: alert.transition,
    reason,
    state: alert.state,
    severity: spike.severity,
    kind: spike.kind,
    zoneId: spike.zoneId,
    zoneName: spike.zoneName,
    zoneLabels: spike.zoneLabels,
    ruleId: spike.ruleId,
    ...(spike.rules === undefined ? {} : { rules: [...spike.rules] }),
    ...(spike.condition == null ? {} : { condition: spike.condition }),
    ruleTitle: ruleTitle(spike.ruleId),
    headline: headlineOf(spike, alert.state),
    ...describeFurther(spike, verdict, [
      ...describeMute(alert),
      ...describeBegin(spike, notes, verdict),
      ...(learningUntilMs === undefined || spike.condition != null
        ? []
        : [describeLearning(learningUntilMs)]),
    ]),
    ...(members.length === 0 ? {} : listMembers(alertId, members)),
    startedAt: alert.firedAtMs,
    endedAt: alert.state === "resolved" ? (spike.closedAtMs ?? alert.resolvedAtMs) : null,
    windowMinutes,
    count,
    usual,
    threshold,
    score,
    peak,
    times: usual > 0 ? count / usual : null,
    actions: countActions(top.action, classify),
    top: {
      ips: top.ip,
      asns: top.asn,
      countries: top.country,
      paths: top.path,
      userAgents: top.ua,
      ja4s: top.ja4,
    },
    sparkline,
    verdict,
    was,
    disagreement: describeDisagreement(advice, verdict),
    unknownActions: namesOfUnknown(top.action, classify),
    exclusion: verdict === undefined ? undefined : exclusionOf(spike, verdict),
    marked,
    advice,
    links: [],
    traits: spike.traits,
    silenceBy: spike.silenceBy,
    howToSilence: silenceCommand(alertId, silenceChoices(spike)),
  });
}

/**
 * The sentence on the severity of a rule's spike, or on what the sources of a zone have in common. `first` are sentences on
 * the alert and its zone that stand before it.
 */
function describeFurther(
  spike: AlertSpike,
  verdict: MessageFacts["verdict"],
  first: readonly string[],
): Pick<AlertMessage, "unit" | "details" | "attackers" | "unnamedAttackers"> {
  const { sources, changes, condition, evidence } = spike;
  if (condition != null) {
    const { zoneIds, distinct } = condition;
    const zones = zoneIds === null ? "every zone" : many(zoneIds.length, "zone");
    const about = `condition: ${describeLimit(condition)}, of ${describeQuery(condition)}; ${zones}, each by itself`;
    return { ...(distinct !== null && { unit: "values" as const }), details: [about, ...first] };
  }
  if (sources != null) {
    const { unit, details, attackers } = describeIncident(spike);
    const unnamedAttackers = sources.unnamed ?? 0;
    return {
      unit,
      details: [...first, ...details],
      attackers,
      ...(unnamedAttackers > 0 && { unnamedAttackers }),
    };
  }
  if (changes != null) {
    // Evidence is of the first rule. A spike that opened with several has none.
    const [change] = changes;
    const isOfFirst = changes.length > 1 && evidence.top.action.length > 0;
    const about = isOfFirst ? [`addresses, paths and the like are those of rule ${change?.ruleId}`] : [];
    return { details: [...first, ...detailsOfChanges(changes), ...about] };
  }
  const details = [...first, ...describeSeverity(spike, verdict)];
  return details.length === 0 ? {} : { details };
}

/** Returns which note the alert began after, unless the reasons of its verdict say so. */
function describeBegin(
  spike: AlertSpike,
  notes: readonly Note[],
  verdict: MessageFacts["verdict"],
): string[] {
  const began = describeNoteBefore(notes, spike);
  return began === null || verdict?.for.includes(toReason(began)) === true ? [] : [began];
}

/** Returns why the severity of a rule's spike is what it is. The addresses are those that the verdict counts, as everywhere in a message. */
function describeSeverity(
  { gradedBy, addresses, severity, raisedFrom }: AlertSpike,
  verdict: MessageFacts["verdict"],
): string[] {
  const senders = verdict === undefined ? addresses : verdict.counts.addresses;
  if (raisedFrom !== undefined && verdict !== undefined) {
    const { injectedThrough = 0 } = verdict.counts;
    const because =
      injectedThrough > 0
        ? `${many(injectedThrough, "request")} with an injection got through`
        : `it is ${isSureAttack(verdict) ? "almost certainly" : "perhaps"} an attack`;
    return [`severity: the verdict raises it from ${raisedFrom}, because ${because}`];
  }
  if (senders == null) return [];
  if (gradedBy === "addresses") return [`severity: few addresses (${senders}) send these events`];
  if (gradedBy !== "both") return [];
  return severity === "critical"
    ? [`severity: ${senders} addresses send these events, far above the usual`]
    : [
        `severity: the verdict, which counts ${many(senders, "address", "addresses")}, lowers it from critical`,
      ];
}

/** The gravest first and then the largest, because a channel may show the first ones only. */
function listMembers(
  alertId: number,
  members: readonly AlertSpike[],
): Pick<AlertMessage, "members" | "howToList"> {
  const ordered = members.toSorted(
    (a, b) =>
      Number(isGraver(b.severity, a.severity)) - Number(isGraver(a.severity, b.severity)) ||
      b.windowCount - a.windowCount ||
      b.score - a.score,
  );
  return {
    members: ordered.map(
      ({ zoneId, zoneName, ruleId, severity, windowCount: count, windowMinutes, baseline: usual }) => {
        return { zoneId, zoneName, ruleId, severity, count, windowMinutes, usual };
      },
    ),
    howToList: `${LONGWATCH} alerts list --incident ${alertId} --state all`,
  };
}

/** Says which silence kept the alert's latest news from the channels. */
function describeMute({ transitions }: AlertRecord): string[] {
  const before = transitions.slice(0, -1).findLast(({ reason }) => !isPersons(reason));
  if (before?.silencedBy == null) return [];
  return [`silence ${before.silencedBy} muted this alert from ${showTime(before.at)} UTC until now`];
}

/** The words of actions that say neither that a request was stopped nor that it got through. */
function namesOfUnknown(
  actions: readonly { value: string }[],
  classify: ActionStates["classify"],
): string[] | undefined {
  const names = actions.flatMap(({ value }) =>
    classify(value) === "other" && value !== "" ? [cutText(value, MAX_ACTION_CHARS)] : [],
  );
  return names.length === 0 ? undefined : names.slice(0, MOST_ACTIONS);
}

function countActions(
  actions: readonly { value: string; count: number }[],
  classify: ActionStates["classify"],
): AlertMessage["actions"] {
  const counts = { blocked: 0, logged: 0, challenged: 0, other: 0 };
  for (const { value, count } of actions) counts[classify(value)] += count;
  return counts;
}
