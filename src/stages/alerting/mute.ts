import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { isChangeKind } from "#model/rule-change.ts";
import { notifiedChannels } from "./alert-history.ts";
import type { AlertRecord } from "./alert-record.ts";
import { type AlertSpike, isCalm } from "./alert-spike.ts";
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
  const { timing } = route;
  const isChange = isChangeKind(spike.kind);
  const isGrouped = isGroupOpen && (alert === null || notifiedChannels(alert).size === 0);
  return {
    alert,
    occurrence: { ...spike, isCalm: isCalm(spike) },
    // A change is told once: it does not go on as an attack does.
    route: isChange
      ? { ...route, repeatIntervalMs: NEVER, timing: { ...timing, repeatIntervalMs: Infinity } }
      : route,
    newsIntervalMs: isChange && alert !== null ? newsInterval(spike, alert) : null,
    mute: { silencedBy, mutedBy: isInhibited ? "inhibition" : isGrouped ? "group" : null },
    hasAdvice: advice.state === "present",
  };
}

const NEVER: ReadonlyMap<string, number> = new Map();
const FIRST_NEWS_MS = 15 * MINUTE_MS;
const LONGEST_NEWS_MS = 4 * HOUR_MS;
const NEWS_WITHIN_MS = 24 * HOUR_MS;

/**
 * Returns how long after its last message an alert may name further rules; null if its message names all. Twice as long
 * after each such message of a day, because the rare rules of a zone that was switched show it over a day.
 */
function newsInterval({ changes }: AlertSpike, { transitions }: AlertRecord): number | null {
  const told = transitions.filter(({ reason }) => reason === "first" || reason === "worse");
  const last = told.at(-1)?.at ?? 0;
  const isNews = changes?.some(({ foundAt, endedAt }) => endedAt === null && foundAt > last) === true;
  const recent = told.filter(({ at }) => at > last - NEWS_WITHIN_MS).length;
  return isNews ? Math.min(FIRST_NEWS_MS * 2 ** (recent - 1), LONGEST_NEWS_MS) : null;
}
