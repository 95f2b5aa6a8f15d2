import { MINUTE_MS } from "#lib/units.ts";
import { changeIntervalMinutes } from "#model/join-interval.ts";
import { isChangeKind } from "#model/rules.ts";
import type { AlertRecord } from "./alert-record.ts";
import { isCalm, isSettled } from "./alert-spike.ts";
import type { Assessment } from "./assess.ts";
import type { Situation } from "./decide.ts";

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
