import { MINUTE_MS } from "../lib/units.ts";
import {
  type AlertRecord,
  countReopenings,
  gravestSeverity,
  hasToldAdvice,
  type NotifyReason,
} from "../model/alert-record.ts";
import { isGraver } from "../model/severity.ts";
import type { Occurrence } from "./occurrence.ts";
import type { Due } from "./plan-ringing.ts";

const REOPEN_WITHIN_MS = 30 * MINUTE_MS;
const FIRST_HOLD_MS = 30 * MINUTE_MS;
const LONGEST_HOLD_MS = 4 * 60 * MINUTE_MS;

/**
 * What there is to say now, in Alertmanager's spirit: from what was said before and what is so, nothing else. `alert` is
 * the newest of the fingerprint, resolved or not; `spike` the newest of the same subject.
 *
 * An episode outlives its spikes. A spike that opens within 30 minutes of the resolve reopens the same alert, as
 * `worse` and under the same key, instead of paging anew; later ones start another alert (`first`). The first resolve
 * comes as soon as the spike closes, because the detector has already waited for quiet. After a reopening that has
 * proved too early, so the alert holds until 30 quiet minutes, doubling with every further reopening up to 4 hours:
 * spikes that come and go inside the hold say nothing, and a rule that flaps all day pages a few times, not every time.
 *
 * A silence keeps `first` and `worse` from the channels, which still count as transitions; whoever was not told hears
 * by `repeat` or `worse` once the silence is over. `resolved` ignores silences: a page that was sent has to be closed.
 *
 * A rise is a transition at once. Channels that were rung a moment ago hear of it by another `worse` when their interval is
 * over, if there is still an attack: while nothing happens nobody is rung for having been right too late.
 */
export function notifyReason(now: {
  readonly alert: AlertRecord | null;
  readonly spike: Occurrence;
  readonly hasAdvice: boolean;
  /** By a silence, an inhibition or a group. */
  readonly isSilenced: boolean;
  readonly nowMs: number;
  /** Who is to hear again, of those who may hear now. */
  readonly due: Due;
}): NotifyReason | "none" {
  const { alert, spike, nowMs, due } = now;
  if (alert === null) return "first";
  if (alert.state === "resolved") return reasonAfterResolve(alert, spike);
  if (spike.closedAtMs !== null) return isHeld(alert, spike.closedAtMs, nowMs) ? "none" : "resolved";
  if (isGraver(spike.severity, gravestSeverity(alert))) return "worse";
  if (now.isSilenced) return "none";
  if (due.rise.length > 0) return "worse";
  if (alert.state === "firing" && due.repeat.length > 0) return "repeat";
  return now.hasAdvice && (due.advice.length > 0 || !hasToldAdvice(alert)) ? "advice" : "none";
}

function reasonAfterResolve(alert: AlertRecord, spike: Occurrence): NotifyReason | "none" {
  // By id, not by time: a spike may open, in event time, before the resolve of its predecessor was written.
  if (alert.spikeId !== null && spike.id <= alert.spikeId) return "none";
  return spike.openedAtMs - (alert.resolvedAtMs ?? 0) <= REOPEN_WITHIN_MS ? "worse" : "first";
}

function isHeld(alert: AlertRecord, closedAtMs: number, nowMs: number): boolean {
  const reopenings = countReopenings(alert);
  if (reopenings === 0) return false;
  return nowMs - closedAtMs < Math.min(FIRST_HOLD_MS * 2 ** (reopenings - 1), LONGEST_HOLD_MS);
}
