import { MINUTE_MS } from "#lib/units.ts";
import { changeIntervalMinutes } from "#model/join-interval.ts";
import { isChangeKind } from "#model/rule-change.ts";
import type { AlertRecord } from "./alert-record.ts";
import { isCalm } from "./alert-spike.ts";
import type { Assessment } from "./assess.ts";
import type { Situation } from "./decide.ts";

/**
 * Returns what `decide` needs for the alert of one spike, with its mute: a silence, an inhibition, the incident that it is
 * part of, or too few addresses. The first that applies is stored.
 */
export function toSituation(assessment: Assessment, alert: AlertRecord | null): Situation {
  const { spike, silencedBy, isInhibited, isMember, isSmall, route, advice } = assessment;
  const mutedBy = isInhibited ? "inhibition" : isMember ? "incident" : isSmall ? "few-addresses" : null;
  return {
    ...assessment,
    alert,
    occurrence: { ...spike, isCalm: isCalm(spike) },
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
