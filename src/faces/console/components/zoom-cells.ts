import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { HourStatus } from "#model/kinds.ts";
import type { CoverageDay, CoverageHour } from "../api/queries.ts";
import { formatCount } from "../style/words.ts";
import type { StripUnit } from "./axis-ticks.ts";
import type { StripCell } from "./coverage-strip.tsx";

/** A cell of the strip: an hour, a day or a month. */
export interface ZoomCell extends StripCell {
  readonly endsAtMs: number;
}

interface Ends {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Hours up to four days, days up to four months, months beyond: cells that a finger can meet. */
export function pickUnit(spanMs: number): StripUnit {
  if (spanMs <= 4 * DAY_MS) return "hour";
  return spanMs <= 130 * DAY_MS ? "day" : "month";
}

/** Every hour of the span, so that the strips of all zones have one time axis. */
export function toHourCells(hours: readonly CoverageHour[], { fromMs, toMs }: Ends): ZoomCell[] {
  const known = new Map(hours.map((hour) => [Date.parse(hour.startsAt), hour]));
  const cells: ZoomCell[] = [];
  const first = Math.min(...known.keys());
  for (let startsAtMs = fromMs; startsAtMs < toMs; startsAtMs += HOUR_MS) {
    const hour = known.get(startsAtMs);
    const cell =
      hour === undefined
        ? ({ state: startsAtMs < first ? "unwatched" : "not yet" } as const)
        : { state: hour.state, note: describeHour(hour) };
    cells.push({ ...cell, startsAtMs, endsAtMs: startsAtMs + HOUR_MS });
  }
  return cells;
}

function describeHour({ storedCount, gapReason, notSealedBecause }: CoverageHour): string {
  const reason = gapReason ?? notSealedBecause;
  return `${formatCount(storedCount)} events${reason === null ? "" : `\n${reason}`}`;
}

/** Days or months of the span. A cell has the state of its worst hour. */
export function toDayCells(
  days: readonly CoverageDay[],
  { fromMs, toMs, unit }: Ends & { readonly unit: "day" | "month" },
): ZoomCell[] {
  const startOf = (atMs: number) => (unit === "day" ? atMs - (atMs % DAY_MS) : startOfMonth(atMs));
  const endOf = (atMs: number) => (unit === "day" ? atMs + DAY_MS : startOfMonth(atMs, 1));
  const known = Map.groupBy(days, ({ day }) => startOf(Date.parse(day)));
  const first = startOf(Math.min(...days.map(({ day }) => Date.parse(day))));
  const cells: ZoomCell[] = [];
  for (let startsAtMs = startOf(fromMs); startsAtMs < toMs; startsAtMs = endOf(startsAtMs)) {
    const sum = { gap: 0, open: 0, imported: 0, sealed: 0, unwatched: 0, stored: 0 };
    for (const one of known.get(startsAtMs) ?? [])
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += one[name];
    const worst = WORST_FIRST.find((state) => sum[state] > 0) ?? "not yet";
    cells.push({
      startsAtMs,
      endsAtMs: endOf(startsAtMs),
      state: startsAtMs < first ? "unwatched" : worst,
      note: `${sum.sealed} hours sealed, ${sum.open} open, ${sum.gap} lost${sum.imported > 0 ? `, ${sum.imported} imported` : ""}; ${formatCount(sum.stored)} events`,
    });
  }
  return cells;
}

const WORST_FIRST = [
  "gap",
  "open",
  "imported",
  "sealed",
  "unwatched",
] as const satisfies readonly HourStatus[];

function startOfMonth(atMs: number, monthsLater = 0): number {
  const at = new Date(atMs);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + monthsLater, 1);
}
