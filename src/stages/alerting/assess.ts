import { isDeepStrictEqual } from "node:util";
import type { AdviceRow } from "#model/advice-row.ts";
import type { LaterMessage } from "#model/later-message.ts";
import { isChangeKind, isRuleKind } from "#model/rule-change.ts";
import type { Subject } from "#model/subject.ts";
import { type AdviceStatus, adviceStatus, NO_ADVICE } from "./advice/advice-status.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { groupKeyOf } from "./group.ts";
import { findInhibition } from "./routing/find-inhibition.ts";
import { planRoute, type RoutePlan } from "./routing/plan-route.ts";
import type { Routing } from "./routing/routing.ts";
import { findSilence, type Silence } from "./silence.ts";

/** The inputs of all decisions of one run, read once. */
export interface Context {
  readonly nowMs: number;
  readonly routing: Routing;
  readonly asks: readonly AdviceRow[];
  readonly silences: readonly Silence[];
  /** The open spikes, without those whose alert a person has resolved. */
  readonly firing: readonly Subject[];
  /** By channel; every channel posts anew if this is left out. */
  readonly laterMessageOf?: (channel: string) => LaterMessage;
}

/** The facts about one spike that do not depend on its alert. */
export interface Assessment {
  readonly spike: AlertSpike;
  readonly advice: AdviceStatus;
  readonly silencedBy: number | null;
  readonly isInhibited: boolean;
  readonly route: RoutePlan;
  /** The group that may notify for the spike; null if its route groups by zone and rule. */
  readonly groupKey: string | null;
}

export type Assess = (spike: AlertSpike) => Assessment;

/** Returns a function that assesses every spike once, and again only if the spike has changed since. */
export function createAssessor(context: Context): Assess {
  const known = new Map<number, Assessment>();
  return (spike) => {
    const before = known.get(spike.id);
    if (before !== undefined && isDeepStrictEqual(before.spike, spike)) return before;
    const assessment = assess(spike, context);
    known.set(spike.id, assessment);
    return assessment;
  };
}

function assess(spike: AlertSpike, { asks, silences, nowMs, routing, firing }: Context): Assessment {
  const route = planRoute(routing, spike, nowMs);
  return {
    spike,
    advice: isRuleKind(spike.kind) ? adviceStatus(spike, asks, nowMs) : NO_ADVICE,
    silencedBy: findSilence(silences, spike, nowMs)?.id ?? null,
    isInhibited: spike.closedAtMs === null && findInhibition(routing.inhibitions, spike, firing) !== null,
    route,
    // An alert about changes is one for all rules of the zone already, and no part of a flood.
    groupKey: isChangeKind(spike.kind) ? null : groupKeyOf(route, spike),
  };
}
