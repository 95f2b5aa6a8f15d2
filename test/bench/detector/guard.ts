import { createBacktest } from "#detection/rules/backtest/backtest.ts";
import type { Detector } from "./peers.ts";

/** Midnight UTC, so that hours of the day are those of the series. */
const FIRST_MINUTE = 20_000 * 1_440;

/** The service's detector, fed with the minutes that have events. */
export function createGuard(z: number): Detector {
  return (counts) => {
    const backtest = createBacktest({
      z,
      startMinute: FIRST_MINUTE,
      endMinute: FIRST_MINUTE + counts.length,
    });
    for (let i = 0; i < counts.length; i += 1) {
      const count = counts[i] as number;
      if (count > 0) backtest.take("series", FIRST_MINUTE + i, count);
    }
    return backtest.report().alerts.map(({ fromMinute, toMinute }) => ({
      from: fromMinute - FIRST_MINUTE,
      to: toMinute - FIRST_MINUTE,
    }));
  };
}
