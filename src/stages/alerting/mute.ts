import type { AlertRecord } from "./alert-record.ts";
import { isCalm } from "./alert-spike.ts";
import type { Assessment } from "./assess.ts";
import type { Situation } from "./decide.ts";

/**
 * Returns what `decide` needs for the alert of one spike, with its mute: a silence, an inhibition, the incident that it is
 * part of, or too few addresses. The first that applies is stored.
 */
export function toSituation(
  { spike, silencedBy, isInhibited, isMember, isSmall, newestAttacker, route, advice }: Assessment,
  alert: AlertRecord | null,
): Situation {
  const mutedBy = isInhibited ? "inhibition" : isMember ? "incident" : isSmall ? "few-addresses" : null;
  return {
    alert,
    occurrence: { ...spike, isCalm: isCalm(spike) },
    // An incident stands for many alerts already, so its first message does not wait for more of them.
    route: spike.kind === "sources" ? { ...route, timing: { ...route.timing, groupWaitMs: 0 } } : route,
    mute: { silencedBy, mutedBy },
    hasAdvice: advice.state === "present",
    newestAttacker,
  };
}
