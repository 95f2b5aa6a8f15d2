import { escapeText } from "../../lib/escape-text.ts";
import type { TakeRow } from "./read-counts.ts";

/** Above every count; a minute and a count then fit one number exactly. */
const COUNTS = 2 ** 25;
const MAX_MISTAKES = 10;

/** Holds all rows, eight bytes or a little more each, and hands them on by series, oldest first. */
export function createRowSorter() {
  const bySeries = new Map<string, number[]>();

  function add(series: string, minute: number, count: number): undefined {
    const rows = bySeries.get(series);
    if (rows === undefined) bySeries.set(series, [minute * COUNTS + count]);
    else rows.push(minute * COUNTS + count);
  }

  /** Returns the mistakes: minutes that stand twice. */
  function replay(take: TakeRow): string[] {
    const mistakes: string[] = [];
    for (const [series, rows] of bySeries) {
      for (const row of Float64Array.from(rows).sort()) {
        const minute = Math.floor(row / COUNTS);
        if (take(series, minute, row % COUNTS) === undefined || mistakes.length >= MAX_MISTAKES) continue;
        const name = escapeText(series.slice(0, 80));
        mistakes.push(`series "${name}", column timestamp: "${minute * 60}" must stand once in a series`);
      }
    }
    return mistakes;
  }

  return { add, replay };
}
