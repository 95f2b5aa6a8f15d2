import { toSpread } from "../spread.ts";
import type { AlertSpan } from "./peers.ts";
import { type Attack, SCORED_FROM } from "./synthetic-series.ts";

/** An alert that comes this long after an attack ended still finds it: its last window holds the attack. */
const LATE_MINUTES = 15;
/** Until the hour's window has forgotten an attack, an alert belongs to it. */
const AFTERMATH_MINUTES = 60;

export interface Score {
  readonly attacks: number;
  readonly found: number;
  readonly recall: number;
  /** Minutes of an attack that had passed when it was found, the one that found it included. */
  readonly medianMinutes: number | null;
  readonly falseAlerts: number;
  readonly falsePerSeriesDay: number;
  readonly precision: number;
  readonly f1: number;
}

export function createScore() {
  const delays: number[] = [];
  let [attacks, falseAlerts, minutes] = [0, 0, 0];

  function add(
    series: { counts: Int32Array; attacks: readonly Attack[] },
    alerts: readonly AlertSpan[],
  ): void {
    minutes += series.counts.length - SCORED_FROM;
    const scored = alerts.filter(({ to }) => to > SCORED_FROM);
    for (const { from, to } of series.attacks) {
      attacks += 1;
      const hit = scored.find((alert) => alert.to > from && alert.from < to + LATE_MINUTES);
      if (hit !== undefined) delays.push(Math.max(hit.from - from, 0) + 1);
    }
    falseAlerts += scored.filter((alert) =>
      series.attacks.every(({ from, to }) => alert.to <= from || alert.from >= to + AFTERMATH_MINUTES),
    ).length;
  }

  function read(): Score {
    const found = delays.length;
    const recall = attacks > 0 ? found / attacks : 0;
    const precision = found + falseAlerts > 0 ? found / (found + falseAlerts) : 0;
    return {
      attacks,
      found,
      recall,
      medianMinutes: toSpread(delays)?.median ?? null,
      falseAlerts,
      falsePerSeriesDay: minutes > 0 ? falseAlerts / (minutes / 1_440) : 0,
      precision,
      f1: recall + precision > 0 ? (2 * recall * precision) / (recall + precision) : 0,
    };
  }

  return { add, read };
}
