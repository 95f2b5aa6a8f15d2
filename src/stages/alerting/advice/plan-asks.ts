import { HOUR_MS } from "#lib/units.ts";
import type { AdviceRow, AdvisedSpike } from "#model/advice.ts";
import { SEVERITIES, type Severity } from "#model/kinds.ts";
import { adviceStatus } from "./advice-status.ts";

export interface OpenSpike extends AdvisedSpike {
  readonly id: number;
  readonly severity: Severity;
}

export interface AskPlan<Spike> {
  readonly asks: readonly Spike[];
  /** Number of spikes that are due, but beyond the budget of this hour. */
  readonly overBudget: number;
}

/**
 * Returns the open spikes to ask about now: at most `atMost`, and no more asks in any hour than the budget, which
 * failed and lost asks use as well. The most severe come first, then the newest.
 */
export function planAsks<Spike extends OpenSpike>(input: {
  readonly spikes: readonly Spike[];
  readonly rows: readonly AdviceRow[];
  readonly nowMs: number;
  readonly budgetPerHour: number;
  readonly atMost: number;
}): AskPlan<Spike> {
  const { spikes, rows, nowMs, budgetPerHour, atMost } = input;
  const spent = rows.filter((row) => row.askedAtMs > nowMs - HOUR_MS).length;
  const left = Math.max(budgetPerHour - spent, 0);
  const due = spikes
    .filter((spike) => adviceStatus(spike, rows, nowMs).isDue)
    .sort((a, b) => rank(b.severity) - rank(a.severity) || b.openedAtMs - a.openedAtMs);
  return { asks: due.slice(0, Math.min(left, atMost)), overBudget: Math.max(due.length - left, 0) };
}

function rank(severity: Severity): number {
  return SEVERITIES.indexOf(severity);
}
