import { isDeepStrictEqual } from "node:util";
import { MINUTE_MS } from "#lib/units.ts";
import type { ActionStates } from "#model/action-class.ts";
import type { AdviceRow } from "#model/advice.ts";
import type { LaterMessage } from "#model/alert-message.ts";
import { isSentByFew } from "#model/ip-address.ts";
import { isLearning, isRuleKind, isSumRule, lastingChanges } from "#model/rules.ts";
import type { SourceTraits, Subject } from "#model/subject.ts";
import { isSureAttack, type StoredVerdict } from "#model/verdict.ts";
import type { Note } from "#model/words.ts";
import { isGraver } from "#model/words.ts";
import { type AdviceStatus, adviceStatus, NO_ADVICE } from "./advice/advice-status.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { findInhibition, planRoute, type RoutePlan } from "./routing/plan-route.ts";
import type { Routing } from "./routing/routing.ts";
import { findAlertSilence, findSilence, type Silence } from "./silence.ts";
import { isTroublesome } from "./verdict-effects.ts";

/** The inputs of all decisions of one run, read once. */
export interface Context {
  readonly nowMs: number;
  readonly routing: Routing;
  readonly asks: readonly AdviceRow[];
  readonly silences: readonly Silence[];
  /** The open spikes, without those whose alert a person has resolved. */
  readonly firing: readonly Subject[];
  /** Verdicts by the id of a spike, the oldest first. Left out: no spike has a verdict. */
  readonly verdicts?: ReadonlyMap<number, readonly StoredVerdict[]>;
  /** The ids of spikes whose messages wait for the spike of another rule. Left out: none. */
  readonly waitingSums?: ReadonlySet<number>;
  /** The ids of spikes that are misfires like another one, of which people were notified. Left out: none. */
  readonly sameMisfires?: ReadonlySet<number>;
  /** The minutes (since the epoch) of the zones' first events. A zone that is left out is older than a day. */
  readonly firstMinutes?: ReadonlyMap<number, number>;
  /** Notes of the day before. Left out: none. */
  readonly notes?: readonly Note[];
  /** Returns the later message of a channel. Left out: every channel posts anew. */
  readonly laterMessageOf?: (channel: string) => LaterMessage;
  /** Left out: the built-in words. */
  readonly actions?: ActionStates | undefined;
}

/** The facts about one spike that do not depend on its alert. */
export interface Assessment {
  readonly spike: AlertSpike;
  readonly advice: AdviceStatus;
  readonly silencedBy: number | null;
  readonly isInhibited: boolean;
  readonly route: RoutePlan;
  /** Whether the spike is part of the alert of another spike. */
  readonly isMember: boolean;
  /** Whether it is a misfire like another one of its zone, which people are notified of. */
  readonly isSameMisfire: boolean;
  /** The verdicts of the spike, the oldest first. */
  readonly ownVerdicts: readonly StoredVerdict[];
  readonly waitsForRule: boolean;
  /** Whether so few addresses send most of the spike's events that it is only listed. */
  readonly isSmall: boolean;
  /**
   * Whether it is a rule's spike that is only listed because it opened in its zone's first day, when nothing is usual yet: it is
   * no attack that is almost certain, and its requests neither attack nor are stopped in numbers.
   */
  readonly isUntried: boolean;
  /**
   * Time at which the alert last grew, in minutes since the epoch: the beginning of an incident's newest attacker that is not
   * silenced, or the finding of a rule's change; null without any.
   */
  readonly newest: number | null;
}

/** So long a busy rule of a new zone looks like a spike. A rule with few events looks new all day. */
const UNTRIED_MINUTES = 120;
/** In a zone's first day this part of the requests that few addresses need is enough. */
const UNTRIED_SHARE = 0.5;

export type Assess = (spike: AlertSpike) => Assessment;

/** Returns a function that assesses every spike once, and again only if the spike has changed since. */
export function createAssessor(context: Context): Assess {
  const known = new Map<number, { readonly spike: AlertSpike; readonly assessment: Assessment }>();
  return (spike) => {
    const before = known.get(spike.id);
    if (before !== undefined && isDeepStrictEqual(before.spike, spike)) return before.assessment;
    const assessment = assess(capInFirstHours(spike, context), context);
    known.set(spike.id, { spike, assessment });
    return assessment;
  };
}

/** Returns a rule's spike of its zone's first hours as a warning at most: what is usual on the internet attacks, too, and did not rise. */
function capInFirstHours(spike: AlertSpike, { firstMinutes }: Context): AlertSpike {
  const firstMinute = firstMinutes?.get(spike.zoneId);
  if (!isRuleKind(spike.kind) || !isGraver(spike.severity, "warning")) return spike;
  if (!isInFirstHours(spike, firstMinute)) return spike;
  const { raisedFrom: _raised, ...rest } = spike;
  return { ...rest, severity: "warning" };
}

function isInFirstHours({ openedAtMs }: AlertSpike, firstMinute: number | undefined): boolean {
  return firstMinute !== undefined && openedAtMs / MINUTE_MS < firstMinute + UNTRIED_MINUTES;
}

function assess(spike: AlertSpike, context: Context): Assessment {
  const { asks, silences, nowMs, routing, firing } = context;
  const route = planRoute(routing, spike, nowMs);
  const isSilenced = (traits: SourceTraits) => findSilence(silences, { ...spike, traits }, nowMs) !== null;
  const loud = (spike.attackers ?? []).filter(({ traits }) => !isSilenced(traits));
  const ownVerdicts = context.verdicts?.get(spike.id) ?? [];
  return {
    spike,
    advice: isRuleKind(spike.kind) ? adviceStatus(spike, asks, nowMs) : NO_ADVICE,
    silencedBy: findAlertSilence(silences, spike, nowMs)?.id ?? null,
    isInhibited: spike.closedAtMs === null && findInhibition(routing.inhibitions, spike, firing) !== null,
    route,
    isMember: spike.memberOf != null,
    isSameMisfire: context.sameMisfires?.has(spike.id) ?? false,
    ownVerdicts,
    waitsForRule: context.waitingSums?.has(spike.id) ?? false,
    isSmall: isSentByFew(spike, routing.fewAddresses) && !isTroublesome(ownVerdicts),
    isUntried: opensUntried(spike, context.firstMinutes?.get(spike.zoneId)) && !isClear(spike, ownVerdicts),
    newest: newestOf([
      ...loud.map(({ since }) => since),
      ...lastingChanges(spike.changes ?? []).map(({ foundAt }) => Math.ceil(foundAt / MINUTE_MS)),
    ]),
  };
}

/**
 * Returns whether verdicts say by themselves, without anything usual to compare with, that people have to know. A rule that only
 * adds others up leaves that to these.
 */
function isClear({ ruleId }: AlertSpike, verdicts: readonly StoredVerdict[]): boolean {
  const latest = verdicts.at(-1);
  if (isSumRule(ruleId)) return false;
  return (latest !== undefined && isSureAttack(latest)) || isTroublesome(verdicts, UNTRIED_SHARE);
}

/** Returns whether a rule's spike says that its zone is new rather than that something rose. */
function opensUntried(spike: AlertSpike, firstMinute: number | undefined): boolean {
  const { kind, openedAtMs } = spike;
  if (firstMinute === undefined || !isRuleKind(kind)) return false;
  return kind === "new-rule"
    ? isLearning(firstMinute, openedAtMs / MINUTE_MS)
    : isInFirstHours(spike, firstMinute);
}

function newestOf(times: readonly number[]): number | null {
  return times.reduce<number | null>((newest, at) => (newest === null || at > newest ? at : newest), null);
}
