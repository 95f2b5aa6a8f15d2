import { createSeriesWatch, takeMinute } from "#detection/rules/series-watch.ts";
import { putHour } from "#detection/rules/thresholds/hour-history.ts";
import { createFractions } from "../../detection/support/histories.ts";
import { type Spread, toSpread } from "../spread.ts";

const FIRST_MINUTE = 20_000 * 1_440;
const WARM_MINUTES = 60;
const HISTORY_HOURS = 170;
const POLICY = { z: 3.5 };

export interface TickSpeed {
  readonly series: number;
  /** Every series has events in every minute and a week behind it; milliseconds per tick of one minute. */
  readonly tickMs: Spread | null;
  /** The tick that opens an hour: the thresholds of every series are computed from 168 hours. */
  readonly hourTickMs: Spread | null;
  readonly rssMegabytes: number;
}

/** Takes a minute of every series in turn, in one process; the first hour is not measured, the two after it are. */
export function measureTicks(seriesCount: number): TickSpeed {
  const fraction = createFractions(1);
  const watches = Array.from({ length: seriesCount }, createSeriesWatch);
  const usual = watches.map(() => 1 + Math.floor(fraction() * 20));
  for (const [at, watch] of watches.entries()) {
    const count = usual[at] as number;
    for (let hour = FIRST_MINUTE / 60 - HISTORY_HOURS; hour < FIRST_MINUTE / 60; hour += 1)
      putHour(watch.history, hour, 60 * count, [3 * count, 15 * count, 60 * count]);
  }
  const [ticks, hourTicks]: number[][] = [[], []];
  for (let i = 0; i < WARM_MINUTES + 120; i += 1) {
    const startedAt = performance.now();
    for (const [at, watch] of watches.entries())
      takeMinute(watch, FIRST_MINUTE + i, (usual[at] as number) + (i % 3), POLICY, () => undefined);
    if (i >= WARM_MINUTES) (i % 60 === 0 ? hourTicks : ticks)?.push(performance.now() - startedAt);
  }
  return {
    series: seriesCount,
    tickMs: toSpread(ticks ?? []),
    hourTickMs: toSpread(hourTicks ?? []),
    rssMegabytes: process.memoryUsage.rss() / 1e6,
  };
}
