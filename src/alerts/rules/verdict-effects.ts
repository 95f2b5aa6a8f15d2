/** What a verdict does to the severity, and why no channel is notified. */

import { DEFAULT_Z } from "#detection/rules/detection-settings.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { MANY_ADDRESSES } from "#model/ip-address.ts";
import type { Severity } from "#model/kinds.ts";
import { isChangeKind } from "#model/rules.ts";
import { countRequests, isSureAttack, leansBenign, type StoredVerdict, SURE_ODDS } from "#model/verdict.ts";
import { gravestOf, isGraver } from "#model/words.ts";
import type { AlertRecord } from "./alert-record.ts";
import { type AlertSpike, isCalm, isSettled } from "./alert-spike.ts";
import type { Assessment } from "./assess.ts";
import type { Situation } from "./decide.ts";
import { DEFAULT_EFFECTS, type VerdictEffects } from "./routing/routing.ts";

/** A rise is beyond doubt so far above the line from which its rule spikes. */
const BEYOND_DOUBT = 1.5;
/** Shares of what rose from which it is something that the zone has not had. */
const LEAST_NEW = 0.5;
const LEAST_IDIOMS = 0.2;
/** A rule with more events in an hour of the day before has them every day, and their idioms, too. */
const EVERYDAY_PER_HOUR = 2;
/** With lower odds something hostile is hardly likelier than the rest together, and nobody is woken as for a certain attack. */
const LIKELY_ODDS = 0.75;

/** Requests of a few senders from which on people are notified: hostile and not stopped, hostile, and stopped. */
const HOSTILE_THROUGH = 20;
const HOSTILE_STOPPED = 25;
const STOPPED = 40;

/** The odds of an attack or a scan together from which injections that got through are an attacker's. */
const HOSTILE_ODDS = 0.65;

/** From so many times the peak at the latest verdict on, a spike is judged again. */
const OUTGROWN = 2;

/** Injections within ten minutes that are too many to have got through, and those if the WAF stops nothing. */
const INJECTED = 20;
const INJECTED_UNSTOPPED = 40;
const INJECTED_WITHIN_MS = 10 * MINUTE_MS;

/**
 * Returns the spike with the severity that its latest verdict makes of it. `members` are spikes of the same cause: the gravest of
 * them counts. A later verdict may raise what an earlier one has lowered. "Through" says that at one look 20 injections in ten minutes
 * had got through, or 40 where the WAF stops nothing. "Everyday" says that the rule has events every day and is not new, that
 * networks and fingerprints are usual, and that no injections got through.
 *
 * | verdict                                             | a rule                                  | through      | an incident      |
 * |-----------------------------------------------------|-----------------------------------------|--------------|------------------|
 * | none                                                | as it is                                |              | as it is         |
 * | attack, all but certain, the rise is beyond doubt   | critical from 12 addresses on, an error if the rule is new | at least an error | critical |
 * | attack, likely                                      | as it is from 12 addresses on, else at most an error; at least a warning | at least an error | as it is |
 * | attack, hardly likelier than the rest               | as it is, from a warning to an error    | an error     | at most an error |
 * | the same, everyday                                  | information, a warning beyond doubt     |              | at most an error |
 * | misfire, broken client, crawler                     | at most a warning                       |              | at most a warning|
 * | broken client of many unknown addresses             | at most a warning                       |              | at most an error |
 * | scanner, everyday                                   | information, a warning beyond doubt     |              | as an attack     |
 * | scanner of fewer than 12 addresses                  | a warning                               | an error     | as an attack     |
 * | scanner of more                                     | a warning                               | as an attack | as an attack     |
 * | unclear, most like an attack or a scanner           | a warning                               |              | at most an error |
 * | the same, everyday                                  | information, a warning beyond doubt     |              | at most an error |
 * | unclear                                             | at most a warning                       |              | at most an error |
 *
 * So a rule alone pages only if its verdict says attack, or if the injections of a scanner get through. A botnet can imitate one
 * client that repeats a request: many new addresses are no broken client.
 */
export function gradeByVerdict(
  spike: AlertSpike,
  verdicts: readonly StoredVerdict[],
  {
    effects = DEFAULT_EFFECTS,
    members = [],
  }: { readonly effects?: VerdictEffects | undefined; readonly members?: readonly AlertSpike[] } = {},
): AlertSpike {
  const latest = verdicts.at(-1);
  const own = gravestOf([spike, ...members].map(({ severity }) => severity));
  if (latest === undefined || isChangeKind(spike.kind)) return { ...spike, severity: own };
  const severity = gradeOf({ ...spike, severity: own }, latest, {
    ...effects,
    through: gotThrough(verdicts),
  });
  return { ...spike, severity, ...(isGraver(severity, own) && { raisedFrom: own }) };
}

function gradeOf(
  spike: AlertSpike,
  verdict: StoredVerdict,
  { raise, lower, through }: VerdictEffects & { readonly through: boolean },
): Severity {
  const { severity } = spike;
  const isRule = spike.kind !== "sources";
  // An attack and a scan are one class here: where both are likely, neither has good odds.
  const hostile = verdict.classes.attack + verdict.classes.scanner;
  const isLikely = hostile >= LIKELY_ODDS;
  const atMost = (limit: Severity) => (isGraver(severity, limit) ? limit : severity);
  // The detector counts the addresses of all events of the rule. Those that rose may come from fewer.
  const asLikely = () => (isLikely && (!isRule || isSentByMany(verdict)) ? severity : atMost("error"));
  // However far above the usual: everyday traffic comes in bursts, too.
  const noise = isBeyondDoubt(spike) ? "warning" : "info";
  const isNoise = !through && isEveryday(spike, verdict);
  if (verdict.said === "attack") {
    if (isNoise && !isLikely) return noise;
    const hasHarmed = through && hostile >= HOSTILE_ODDS;
    return raise ? raiseFor({ ...spike, severity: asLikely() }, verdict, hasHarmed) : asLikely();
  }
  if (lower.some((one) => one === verdict.said)) return atMost("warning");
  switch (verdict.said) {
    case "misfire":
    case "crawler":
      return atMost("warning");
    case "broken-client":
      return atMost(isImitable(verdict) && !isRule ? "error" : "warning");
    case "scanner":
      if (!isRule) return asLikely();
      if (!raise || !through) return isNoise ? noise : "warning";
      return isSentByMany(verdict) ? gravestOf([asLikely(), "error"]) : "error";
    case "unclear":
      if (!isRule) return atMost("error");
      if (leansBenign(verdict)) return atMost("warning");
      return isNoise ? noise : "warning";
    default:
      return verdict.said satisfies never;
  }
}

function raiseFor(spike: AlertSpike, verdict: StoredVerdict, through: boolean): Severity {
  const isRule = spike.kind !== "sources";
  const least = gravestOf([spike.severity, through && isRule ? "error" : "warning"]);
  if (!isSureAttack(verdict)) return least;
  if (!isRule) return "critical";
  if (!isSentByMany(verdict) || (!isBeyondDoubt(spike) && !isNew(verdict))) return least;
  return spike.kind === "new-rule" ? gravestOf([least, "error"]) : "critical";
}

function isBeyondDoubt({ score }: AlertSpike): boolean {
  return score >= DEFAULT_Z + BEYOND_DOUBT;
}

/** Returns whether many addresses send what rose, or nobody knows how many. */
function isSentByMany({ counts: { addresses } }: StoredVerdict): boolean {
  return addresses >= MANY_ADDRESSES || addresses === 0;
}

/** Returns whether so many injections got through at one of the looks that somebody has to act. */
function gotThrough(verdicts: readonly StoredVerdict[]): boolean {
  return verdicts.some(({ counts: { injectedThrough = 0, blocked, challenged }, since, judgedAt }) => {
    const least = blocked + challenged === 0 ? INJECTED_UNSTOPPED : INJECTED;
    return injectedThrough >= least * Math.max((judgedAt - since) / INJECTED_WITHIN_MS, 1);
  });
}

/** Returns whether nothing of the rise of an everyday rule is new: its networks or fingerprints are known to be usual. */
function isEveryday(spike: AlertSpike, verdict: StoredVerdict): boolean {
  const { usualAsn, usualJa4 } = verdict.features;
  const isKnown = usualAsn.value !== null || usualJa4.value !== null;
  return spike.kind === "spike" && hasDaily(verdict) && isKnown && !isNew(verdict);
}

function hasDaily({ background }: StoredVerdict): boolean {
  return (background?.perHour ?? 0) > EVERYDAY_PER_HOUR;
}

/** Returns whether what rose is something that the zone has not had: networks, fingerprints, idioms of attacks where there were none. */
function isNew(verdict: StoredVerdict): boolean {
  const share = (name: "usualAsn" | "usualJa4" | "idiom") => verdict.features[name].value;
  return (
    (share("usualAsn") ?? 1) < LEAST_NEW ||
    (share("usualJa4") ?? 1) < LEAST_NEW ||
    ((share("idiom") ?? 0) > LEAST_IDIOMS && !hasDaily(verdict))
  );
}

/** Returns whether an open spike has grown so much since its latest verdict that something else may have joined it. */
export function hasOutgrown(
  { closedAtMs, memberOf, peak }: AlertSpike,
  verdicts: readonly StoredVerdict[],
): boolean {
  const before = verdicts.at(-1)?.peak;
  return closedAtMs === null && memberOf == null && before !== undefined && peak >= OUTGROWN * before;
}

/** Many addresses, of networks that are not usual and without sessions, may be a botnet. */
function isImitable({ counts, features, odds }: StoredVerdict): boolean {
  const isKnown = (features.usualAsn.value ?? 0) >= LEAST_NEW || (features.session.value ?? 0) >= LEAST_NEW;
  return counts.addresses >= MANY_ADDRESSES && !(isKnown && odds >= SURE_ODDS);
}

/**
 * Returns whether people are notified of a spike although few addresses send it, or nothing is usual yet: the requests hold idioms of
 * attacks and got through, or so many that it does not matter, or the WAF stops so many requests that somebody is cut off. `share`
 * is the part of these numbers that is enough.
 */
export function isTroublesome(verdicts: readonly StoredVerdict[], share = 1): boolean {
  const verdict = verdicts.at(-1);
  if (verdict === undefined) return false;
  const { blocked, challenged, hostile = 0, hostileThrough = 0 } = verdict.counts;
  if (hostileThrough >= share * HOSTILE_THROUGH || hostile >= share * HOSTILE_STOPPED) return true;
  return Math.min(blocked + challenged, countRequests(verdict.counts)) >= share * STOPPED;
}

/**
 * Returns what `decide` needs for the alert of one spike, with its mute: a silence, an inhibition, the alert that it is part
 * of, a misfire that people know, the digest for a silent rule, too few addresses, or a zone's first day. The first that applies is stored.
 */
export function toSituation(assessment: Assessment, alert: AlertRecord | null): Situation {
  const { spike, silencedBy, isInhibited, isMember, isSameMisfire, isSmall, isUntried, route, advice } =
    assessment;
  const mutes = [
    ["inhibition", isInhibited],
    ["incident", isMember],
    ["misfire", isSameMisfire],
    ["digest", spike.kind === "silent-rule"],
    ["few-addresses", isSmall],
    ["first-day", isUntried],
  ] as const;
  const mutedBy = mutes.find(([, applies]) => applies)?.[0] ?? null;
  return {
    ...assessment,
    alert,
    occurrence: { ...spike, isCalm: isCalm(spike), isSettled: isSettled(spike) },
    route: toRoute(spike.kind, route),
    mute: { silencedBy, mutedBy },
    hasAdvice: advice.state === "present",
    joinIntervalMs: isChangeKind(spike.kind)
      ? (messages) => changeIntervalMinutes(messages) * MINUTE_MS
      : undefined,
  };
}

function toRoute(kind: string, route: Assessment["route"]): Situation["route"] {
  const { timing } = route;
  // An incident stands for many alerts already, so its first message does not wait for more of them.
  if (kind === "sources") return { ...route, timing: { ...timing, groupWaitMs: 0 } };
  // A change sends one message: it does not go on as an attack does.
  if (isChangeKind(kind))
    return { ...route, repeatIntervalMs: new Map(), timing: { ...timing, repeatIntervalMs: Infinity } };
  return route;
}

/** Minutes between two messages of one incident, by the number of messages before; the last number holds for all further ones. */
const MINUTES = [0, 5, 5, 10, 20, 40, 60];

/**
 * Returns how many minutes after its latest message an incident may name new attackers. So a flood of addresses makes
 * fifteen messages in an hour of five incidents, and each says how many there are.
 */
export function joinIntervalMinutes(messages: number): number {
  return MINUTES[Math.min(messages, MINUTES.length - 1)] ?? 60;
}

const FIRST_CHANGES = 15;
const LONGEST_CHANGES = 240;

/**
 * Returns how many minutes after its latest message an alert about changed rules may name further ones. Twice as long after
 * each message, because the rare rules of a zone that was switched show it over a day.
 */
function changeIntervalMinutes(messages: number): number {
  return Math.min(FIRST_CHANGES * 2 ** Math.max(messages - 1, 0), LONGEST_CHANGES);
}
