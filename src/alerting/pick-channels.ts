import { type AlertRecord, gravestSeverity, type NotifyReason, toldChannels } from "../model/alert-record.ts";
import { isGraver } from "../model/severity.ts";
import type { Occurrence } from "./occurrence.ts";
import { type Due, type Listeners, planRinging, type Ringing } from "./plan-ringing.ts";

const plainly = (channels: readonly string[]): Ringing => ({ channels, quiet: [], waiting: [] });

/**
 * Who hears of a transition. News goes to every channel of its routes, a rise to those that have not been rung just now;
 * a repeat to those that have not heard for long enough; an update or a resolve only to those that have something to update
 * or to close, a resolve wherever the routes lead by now.
 */
export function pickChannels(input: {
  readonly reason: NotifyReason;
  readonly alert: AlertRecord | null;
  readonly spike: Pick<Occurrence, "severity" | "isCalm">;
  readonly listeners: Listeners;
  readonly due: Due;
  readonly isSilenced: boolean;
  readonly nowMs: number;
  /** Every channel there is; those of `listeners` without. */
  readonly configured?: readonly string[];
}): Ringing {
  const { reason, alert, spike, listeners, due, isSilenced, nowMs } = input;
  const routed = [...new Set(listeners.channels)];
  if (reason === "resolved") {
    const told: ReadonlySet<string> = alert === null ? new Set() : toldChannels(alert);
    return plainly([...new Set(input.configured ?? routed)].filter((channel) => told.has(channel)));
  }
  if (isSilenced) return plainly([]);
  if (reason === "advice") return plainly(due.advice);
  if (reason === "repeat") return plainly(due.repeat);
  if (reason === "first" || alert === null) return plainly(routed);
  const isNews = alert.state === "resolved" || isGraver(spike.severity, gravestSeverity(alert));
  if (!isNews && due.rise.length > 0) return plainly(due.rise);
  return planRinging(alert, listeners, spike, nowMs);
}
