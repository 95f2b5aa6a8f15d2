import { createSeriesWatch, takeMinute } from "../../../src/spike/series-watch.ts";
import { createFractions } from "../../spike/support/histories.ts";
import { type Spread, toSpread } from "../spread.ts";

const FIRST_MINUTE = 20_000 * 1_440;
const WARM_MINUTES = 180;
const POLICY = { z: 3.5 };

export interface TickSpeed {
  readonly series: number;
  /** Every series has an event in every minute; milliseconds per tick of one minute. */
  readonly tickMs: Spread | null;
  /** The tick that opens an hour: thresholds of every series are computed. */
  readonly hourTickMs: Spread | null;
  readonly rssMegabytes: number;
}

/** Takes a minute of every series in turn, in one process, for three hours of history and two more measured. */
export function measureTicks(seriesCount: number): TickSpeed {
  const fraction = createFractions(1);
  const watches = Array.from({ length: seriesCount }, createSeriesWatch);
  const usual = watches.map(() => 1 + Math.floor(fraction() * 20));
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
