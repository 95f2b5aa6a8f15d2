import { notifiedChannels } from "./alert-history.ts";
import type { AlertRecord } from "./alert-record.ts";
import { isCalm } from "./alert-spike.ts";
import type { Assessment } from "./assess.ts";
import type { Situation } from "./decide.ts";

/**
 * Returns what `decide` needs for the alert of one spike, with its mute: a silence, an inhibition, or the open group that
 * it belongs to. A group mutes an alert only while no channel was notified of that alert.
 */
export function toSituation(
  { spike, silencedBy, isInhibited, route, advice }: Assessment,
  alert: AlertRecord | null,
  isGroupOpen: boolean,
): Situation {
  const isGrouped = isGroupOpen && (alert === null || notifiedChannels(alert).size === 0);
  return {
    alert,
    occurrence: { ...spike, isCalm: isCalm(spike) },
    route,
    mute: { silencedBy, mutedBy: isInhibited ? "inhibition" : isGrouped ? "group" : null },
    hasAdvice: advice.state === "present",
  };
}
