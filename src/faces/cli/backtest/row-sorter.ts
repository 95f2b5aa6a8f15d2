import { escapeText } from "#lib/text.ts";
import type { TakeRow } from "./read-counts.ts";

/** Larger than every count, so that a minute and a count fit exactly into one number. */
const COUNTS = 2 ** 25;
const MAX_MISTAKES = 10;

/** Holds all rows in memory, about eight bytes each, and replays them by series, oldest first. */
export function createRowSorter() {
  const bySeries = new Map<string, number[]>();

  function add(series: string, minute: number, count: number): undefined {
    const rows = bySeries.get(series);
    if (rows === undefined) bySeries.set(series, [minute * COUNTS + count]);
    else rows.push(minute * COUNTS + count);
  }

  /** Returns a mistake for every minute that occurs twice in a series. */
  function replay(take: TakeRow): string[] {
    const mistakes: string[] = [];
    for (const [series, rows] of bySeries) {
      for (const row of Float64Array.from(rows).sort()) {
        const minute = Math.floor(row / COUNTS);
        if (take(series, minute, row % COUNTS) === undefined || mistakes.length >= MAX_MISTAKES) continue;
        const name = escapeText(series.slice(0, 80));
        mistakes.push(
          `series "${name}", column timestamp: "${minute * 60}" must occur only once in a series`,
        );
      }
    }
    return mistakes;
  }

  return { add, replay };
}
