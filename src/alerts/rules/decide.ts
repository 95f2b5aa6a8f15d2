import { MINUTE_MS } from "#lib/units.ts";
import type { NotifyReason } from "#model/kinds.ts";
import { isSureAttack, type StoredVerdict, turns } from "#model/verdict.ts";
import { isEnding, isGraver } from "#model/words.ts";
import {
  countNotifications,
  countReopenings,
  gravestSeverity,
  hasSentAdvice,
  lastNotification,
  lastNotifiedAt,
  lastSent,
  namedThrough,
  notifiedChannels,
  pendingWorseSince,
  resolvedThrough,
  sentVerdict,
} from "./alert-history.ts";
import {
  type AlertRecord,
  isMuted,
  type Mute,
  NOBODY,
  nextAlert,
  type Occurrence,
  type Recipients,
} from "./alert-record.ts";
import type { Context } from "./assess.ts";
import type { RoutePlan } from "./routing/plan-route.ts";
import { joinIntervalMinutes } from "./verdict-effects.ts";

const REOPEN_WITHIN_MS = 30 * MINUTE_MS;
const FIRST_HOLD_MS = 30 * MINUTE_MS;
const LONGEST_HOLD_MS = 4 * 60 * MINUTE_MS;
/** A calm spike usually closes within half of this. */
const CALM_MS = 60 * MINUTE_MS;

/** An alert and everything that its next transition depends on. */
export interface Situation {
  /** The newest alert of the fingerprint, resolved or not. */
  readonly alert: AlertRecord | null;
  readonly occurrence: Occurrence;
  readonly route: Pick<RoutePlan, "channels" | "held" | "repeatIntervalMs"> & {
    readonly timing: Pick<RoutePlan["timing"], "groupWaitMs" | "groupIntervalMs" | "repeatIntervalMs">;
  };
  readonly mute: Mute;
  readonly hasAdvice: boolean;
  /** The verdicts of the spike, the oldest first; none if left out. */
  readonly ownVerdicts?: readonly StoredVerdict[];
  /** Whether the message waits for the spike of another rule, whose requests this rule adds up. */
  readonly waitsForRule?: boolean;
  /** Time at which the alert last grew, in minutes since the epoch. */
  readonly newest?: number | null;
  /** The pause after so many messages before one that says how it grew. Default: that of incidents. */
  readonly joinIntervalMs?: ((messages: number) => number) | undefined;
}

/** The next transition of an alert. */
export interface Decision extends Recipients {
  readonly reason: NotifyReason;
  /** After the transition. */
  readonly alert: AlertRecord;
}

export type DecisionContext = Pick<Context, "nowMs" | "laterMessageOf"> & {
  /** Every configured channel. */
  readonly routing: { readonly channels: readonly string[] };
};

type State = "new" | "over" | "reopened" | "open";

interface Facts extends Situation, DecisionContext {
  readonly isMuted: boolean;
}

interface Case {
  readonly state: State;
  /** Whether the case applies. The first case of the state that applies decides. */
  readonly when: (facts: Facts) => boolean;
  readonly reason: NotifyReason | null;
  readonly to: (facts: Facts) => Recipients;
}

const always = () => true;
const nobody = () => NOBODY;
const notify = (notified: readonly string[]): Recipients => ({ ...NOBODY, notified });
const everyone = ({ route }: Facts) => notify([...new Set(route.channels)]);

const CASES: readonly Case[] = [
  { state: "new", when: isInGroupWait, reason: null, to: nobody },
  { state: "new", when: awaitsRule, reason: null, to: nobody },
  { state: "new", when: always, reason: "first", to: everyone },
  { state: "over", when: always, reason: null, to: nobody },
  { state: "reopened", when: awaitsRule, reason: null, to: nobody },
  { state: "reopened", when: always, reason: "again", to: byGroupInterval },
  { state: "open", when: isKeptOpen, reason: null, to: nobody },
  { state: "open", when: hasSettled, reason: "settled", to: everyNotified },
  { state: "open", when: isClosed, reason: "resolved", to: everyNotified },
  { state: "open", when: awaitsRule, reason: null, to: nobody },
  { state: "open", when: isNextSpike, reason: "again", to: byGroupInterval },
  { state: "open", when: isWorse, reason: "worse", to: byGroupInterval },
  { state: "open", when: (facts) => facts.isMuted, reason: null, to: nobody },
  { state: "open", when: hasDueJoin, reason: "join", to: byGroupInterval },
  { state: "open", when: (facts) => dueWorse(facts).length > 0, reason: "worse", to: only(dueWorse) },
  { state: "open", when: (facts) => dueRepeat(facts).length > 0, reason: "repeat", to: only(dueRepeat) },
  { state: "open", when: (facts) => dueVerdict(facts).length > 0, reason: "turned", to: byVerdict },
  { state: "open", when: hasNewAdvice, reason: "advice", to: only(dueAdvice) },
  { state: "open", when: always, reason: null, to: nobody },
];

/**
 * Decides the next transition of an alert, and which channels it is sent to; null if there is none. The first case that
 * applies decides. The columns: the alert's state, what has changed, the notify reason, the channels that are notified,
 * those whose message is updated in place, those that wait to be notified later.
 *
 * | # | state    | what has changed                                        | reason   | notified       | updated in place | wait      |
 * |---|----------|---------------------------------------------------------|----------|----------------|------------------|-----------|
 * | 1 | new      | the spike opened less than `group_wait` ago             | -        |                |                  |           |
 * | 2 | new      | its message waits for the spike of another rule         | -        |                |                  |           |
 * | 3 | new      | anything else                                           | first    | all            |                  |           |
 * | 4 | over     | anything                                                | -        |                |                  |           |
 * | 5 | reopened | the message waits for the spike of another rule         | -        |                |                  |           |
 * | 6 | reopened | a later spike opened within 30 minutes of the resolve   | again    | A              | B                | C         |
 * | 7 | open     | the spike closed, less than the hold ago                | -        |                |                  |           |
 * | 8 | open     | the spike closed, and what rose goes on                 | settled  | all notified   |                  |           |
 * | 9 | open     | the spike closed                                        | resolved | all notified   |                  |           |
 * | 10| open     | the message waits for the spike of another rule         | -        |                |                  |           |
 * | 11| open     | it was calm for ten minutes, and a later spike opened   | again    | A              | B                | C         |
 * | 12| open     | the severity is higher than ever since the alert fired  | worse    | A              | B                | C         |
 * | 13| open     | nothing of the above, and the alert is muted            | -        |                |                  |           |
 * | 14| open     | an attacker has joined, and the join interval is over   | join     | A              | B                | C         |
 * | 15| open     | channels waited for an earlier message of 6, 11, 12 or 14, now due | worse | these channels |           |           |
 * | 16| open     | `repeat_interval` is over, and the alert is not acknowledged | repeat | these channels |                |           |
 * | 17| open     | the verdict is of another class than the one that was sent | turned | D              | E                |           |
 * | 18| open     | a recommendation came                                   | advice   | notified before without it |      |           |
 * | 19| open     | anything else                                           | -        |                |                  |           |
 *
 * States. `new`: no alert yet, or the last one was resolved more than 30 minutes before the spike opened. `over`: resolved,
 * and no later spike. `reopened`: resolved, and a later spike opened within these 30 minutes; or a person has resolved the alert
 * of an incident, and another attacker has joined since. `open`: firing or acknowledged.
 *
 * A: channels whose last notification of the alert is at least `group_interval` old; receivers that deduplicate by key, if
 * they have the alert open; and channels that had at most a warning, if the severity is now critical. B: of the others, those
 * that can update their message. C: the rest. While the spike is calm (its latest count is an everyday one), A is empty for
 * an open alert, and cases 15 and 16 wait up to an hour longer.
 *
 * D and E: channels that were sent the alert with a verdict of another class, or with none. Attack and scanner are one class, and a
 * verdict that has become unclear is no news. If it is now an attack that is almost certain, D is those that `group_interval` allows.
 * Otherwise E is those that can update their message or know its key, and D is the rest.
 *
 * The join interval (case 14) of an incident is 5, 5, 10, 20, 40 and then 60 minutes after the alert's latest message. Every message names
 * all attackers that are active. That of changed rules is 15 minutes, doubling up to four hours.
 *
 * A muted transition (silence, inhibition, member of an incident, few addresses) is stored and sent to nobody; `resolved` is never muted. Channels in their
 * quiet hours are not in `route.channels`; they are due in case 15, 16 or 17 after their quiet hours.
 * The hold (case 7): an alert that was reopened stays open for 30 quiet minutes, twice as long for each further reopening,
 * at most 4 hours.
 */
export function decide(situation: Situation, context: DecisionContext): Decision | null {
  const { alert, occurrence, route, mute, hasAdvice, ownVerdicts, newest } = situation;
  const facts: Facts = { ...situation, ...context, isMuted: isMuted(mute) };
  const state = stateOf(situation);
  const found = CASES.find((one) => one.state === state && one.when(facts));
  if (found === undefined || found.reason === null) return null;
  const { reason } = found;
  const isEnd = isEnding(reason);
  const recipients = facts.isMuted && !isEnd ? NOBODY : found.to(facts);
  const { nowMs } = context;
  const latest = ownVerdicts?.at(-1);
  const isShown = latest !== undefined && occurrence.id !== null && showsVerdict(reason);
  const verdict = isShown
    ? { spikeId: occurrence.id, look: latest.look, said: latest.said, title: latest.title }
    : undefined;
  const change = {
    reason,
    occurrence,
    recipients,
    mute,
    held: route.held,
    hasAdvice,
    verdict,
    newest,
    nowMs,
  };
  return { reason, ...recipients, alert: nextAlert(alert, change) };
}

/** The short messages of advice and of the end show no verdict. */
function showsVerdict(reason: NotifyReason): boolean {
  return reason !== "advice" && !isEnding(reason);
}

/** A message waits for a newer verdict than one of this age. */
const FRESH_MS = 15_000;

/** Returns whether a message, now or later, would be decided by no verdict, or by one that was judged before what it says. */
export function lacksVerdict(
  { reason, notified, updated, waiting }: Pick<Decision, "reason" | keyof Recipients>,
  verdicts: readonly StoredVerdict[],
  nowMs: number,
): boolean {
  if (notified.length + updated.length + waiting.length === 0 || !showsVerdict(reason)) return false;
  return nowMs - (verdicts.at(-1)?.judgedAt ?? 0) > FRESH_MS;
}

function stateOf({ alert, occurrence, newest }: Situation): State {
  if (alert === null) return "new";
  if (alert.state !== "resolved") return "open";
  // By id, not by time: in event time a spike may open before the resolve of the one before it was written.
  if (alert.spikeId !== null && (occurrence.id ?? 0) <= alert.spikeId) {
    const known =
      alert.spikeId === occurrence.id && occurrence.closedAtMs === null ? resolvedThrough(alert) : null;
    return known !== null && (newest ?? 0) > known ? "reopened" : "over";
  }
  return beginsEpisode(alert, occurrence) ? "new" : "reopened";
}

/** Returns whether the spike begins a new episode of the alert, or has begun the one that is open. */
function beginsEpisode(
  { state, firedAtMs, resolvedAtMs }: AlertRecord,
  { openedAtMs }: Pick<Occurrence, "openedAtMs">,
): boolean {
  return state === "resolved"
    ? openedAtMs - (resolvedAtMs ?? 0) > REOPEN_WITHIN_MS
    : firedAtMs === openedAtMs;
}

function isInGroupWait({ occurrence, route, isMuted, nowMs }: Facts): boolean {
  // Nobody who is woken waits for more of the same.
  if (isMuted || occurrence.closedAtMs !== null || isGraver(occurrence.severity, "warning")) return false;
  return nowMs - occurrence.openedAtMs < route.timing.groupWaitMs;
}

function awaitsRule({ waitsForRule = false, isMuted }: Facts): boolean {
  return waitsForRule && !isMuted;
}

function isClosed({ occurrence }: Facts): boolean {
  return occurrence.closedAtMs !== null;
}

function hasSettled({ occurrence }: Facts): boolean {
  return occurrence.closedAtMs !== null && occurrence.isSettled === true;
}

function isNextSpike({ alert, occurrence }: Facts): boolean {
  return alert !== null && alert.spikeId !== null && (occurrence.id ?? 0) > alert.spikeId;
}

function isKeptOpen({ alert, occurrence, nowMs }: Facts): boolean {
  const reopenings = alert === null ? 0 : countReopenings(alert);
  if (occurrence.closedAtMs === null || reopenings === 0) return false;
  const holdMs = Math.min(FIRST_HOLD_MS * 2 ** (reopenings - 1), LONGEST_HOLD_MS);
  return nowMs - occurrence.closedAtMs < holdMs;
}

function isWorse({ alert, occurrence }: Facts): boolean {
  return alert !== null && isGraver(occurrence.severity, gravestSeverity(alert));
}

/** A due `worse` or `repeat` names the new attackers as well, so that every channel is notified of them at once. */
function hasDueJoin(facts: Facts): boolean {
  const { alert, newest, nowMs, joinIntervalMs = incidentIntervalMs } = facts;
  if (alert === null || newest == null || newest <= namedThrough(alert)) return false;
  const isOver = nowMs - (lastNotifiedAt(alert) ?? 0) >= joinIntervalMs(countNotifications(alert));
  return isOver || dueWorse(facts).length > 0 || dueRepeat(facts).length > 0;
}

function incidentIntervalMs(messages: number): number {
  return joinIntervalMinutes(messages) * MINUTE_MS;
}

function hasNewAdvice(facts: Facts): boolean {
  const { alert, hasAdvice } = facts;
  return alert !== null && hasAdvice && (dueAdvice(facts).length > 0 || !hasSentAdvice(alert));
}

function only(due: (facts: Facts) => readonly string[]): Case["to"] {
  return (facts) => notify(due(facts));
}

/** Wherever the routes lead by now. */
function everyNotified({ alert, routing }: Facts): Recipients {
  const known = alert === null ? new Set<string>() : notifiedChannels(alert);
  return notify([...new Set(routing.channels)].filter((channel) => known.has(channel)));
}

function byGroupInterval(facts: Facts): Recipients {
  const { alert, route, occurrence, laterMessageOf } = facts;
  const routed = [...new Set(route.channels)];
  if (alert === null) return notify(routed);
  const isDelayed = occurrence.isCalm && alert.state !== "resolved";
  const notified = routed.filter((channel) => !isDelayed && mayNotify(facts, alert, channel));
  const others = routed.filter((channel) => !notified.includes(channel));
  const isUpdated = (channel: string) =>
    laterMessageOf?.(channel) === "update-in-place" && lastNotification(alert, channel) !== null;
  return {
    notified,
    updated: others.filter(isUpdated),
    waiting: others.filter((channel) => !isUpdated(channel)),
  };
}

function mayNotify(
  { route, occurrence, laterMessageOf, nowMs }: Facts,
  alert: AlertRecord,
  channel: string,
): boolean {
  const last = lastNotification(alert, channel);
  if (last === null || nowMs - last.atMs >= route.timing.groupIntervalMs) return true;
  // After a resolve such a receiver would notify people of a new alert.
  if (laterMessageOf?.(channel) === "same-incident" && notifiedChannels(alert).has(channel)) return true;
  // People are not woken for info or warning, so critical is the first severity that wakes them.
  return occurrence.severity === "critical" && !isGraver(last.severity, "warning");
}

function graceOf({ occurrence }: Facts): number {
  return occurrence.isCalm ? CALM_MS : 0;
}

function dueWorse(facts: Facts): readonly string[] {
  const { alert, route, nowMs } = facts;
  if (alert === null) return [];
  return [...new Set(route.channels)].filter((channel) => {
    const since = pendingWorseSince(alert, channel);
    return since !== null && nowMs - since >= graceOf(facts) && mayNotify(facts, alert, channel);
  });
}

function dueRepeat(facts: Facts): readonly string[] {
  const { alert, route, nowMs } = facts;
  if (alert === null || alert.state !== "firing") return [];
  const { timing, channels, repeatIntervalMs } = route;
  return [...new Set(channels)].filter((channel) => {
    const intervalMs = repeatIntervalMs.get(channel) ?? timing.repeatIntervalMs;
    const { atMs, isPending } = lastSent(alert, channel);
    // A pending message may follow a notification of just before the silence or the quiet hours.
    const notifiedAtMs = lastNotification(alert, channel)?.atMs ?? Number.NEGATIVE_INFINITY;
    const isRecent = nowMs - notifiedAtMs < Math.min(timing.groupIntervalMs, intervalMs);
    return !isRecent && nowMs - graceOf(facts) - atMs >= (isPending ? 0 : intervalMs);
  });
}

function dueAdvice({ alert, route }: Facts): readonly string[] {
  if (alert === null) return [];
  const notified = notifiedChannels(alert);
  return [...new Set(route.channels)].filter(
    (channel) => notified.has(channel) && !hasSentAdvice(alert, channel),
  );
}

/** Whether people are notified of a verdict. Another one only changes what their messages say. */
const isUrgent = isSureAttack;

function dueVerdict(facts: Facts): readonly string[] {
  const { alert, route, occurrence, ownVerdicts = [] } = facts;
  const now = ownVerdicts.at(-1);
  if (alert === null || now === undefined) return [];
  const known = notifiedChannels(alert);
  return [...new Set(route.channels)].filter((channel) => {
    // A channel that waits to be notified of a rise gets the verdict with it.
    if (!known.has(channel) || pendingWorseSince(alert, channel) !== null) return false;
    const before = sentVerdict(alert, { spikeId: occurrence.id, verdicts: ownVerdicts }, channel);
    if (!turns(before, now)) return false;
    return !isUrgent(now) || before === null || mayNotify(facts, alert, channel);
  });
}

/** Whether a later message to the channel notifies nobody. */
function changesInPlace({ laterMessageOf }: Facts, channel: string): boolean {
  return (laterMessageOf?.(channel) ?? "post-anew") !== "post-anew";
}

function byVerdict(facts: Facts): Recipients {
  const now = facts.ownVerdicts?.at(-1);
  const due = dueVerdict(facts);
  const updated = due.filter((one) => now !== undefined && !isUrgent(now) && changesInPlace(facts, one));
  return { ...NOBODY, notified: due.filter((one) => !updated.includes(one)), updated };
}
