import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { HourStatus } from "#model/kinds.ts";
import type { CoverageDay, CoverageHour } from "../../api/coverage.ts";
import type { StripUnit } from "../../components/axis-ticks.ts";
import type { StripCell } from "../../components/coverage-strip.tsx";
import { formatCount } from "../../look/words.ts";

/** A cell of the strip: an hour, a day or a month. */
export interface ZoomCell extends StripCell {
  readonly endsAtMs: number;
}

/** Hours up to four days, days up to four months, months beyond: cells that a finger can meet. */
export function pickUnit(spanMs: number): StripUnit {
  if (spanMs <= 4 * DAY_MS) return "hour";
  return spanMs <= 130 * DAY_MS ? "day" : "month";
}

function startOfMonth(atMs: number): number {
  const at = new Date(atMs);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1);
}

function endOfMonth(atMs: number): number {
  const at = new Date(atMs);
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1);
}

/** Every hour of the span, so that the strips of all zones have one time axis. */
export function toHourCells(
  hours: readonly CoverageHour[],
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): ZoomCell[] {
  const known = new Map(hours.map((hour) => [Date.parse(hour.startsAt), hour]));
  const cells: ZoomCell[] = [];
  const first = Math.min(...known.keys());
  for (let startsAtMs = fromMs; startsAtMs < toMs; startsAtMs += HOUR_MS) {
    const hour = known.get(startsAtMs);
    const endsAtMs = startsAtMs + HOUR_MS;
    if (hour === undefined)
      cells.push({ startsAtMs, endsAtMs, state: startsAtMs < first ? "unwatched" : "not yet" });
    else cells.push({ ...toHourCell(hour), startsAtMs, endsAtMs });
  }
  return cells;
}

function toHourCell({ state, storedCount, gapReason, notSealedBecause }: CoverageHour) {
  const reason = gapReason ?? notSealedBecause;
  return { state, note: `${formatCount(storedCount)} events${reason === null ? "" : `\n${reason}`}` };
}

/** Days or months of the span. A cell has the state of its worst hour. */
export function toDayCells(
  days: readonly CoverageDay[],
  { fromMs, toMs, unit }: { readonly fromMs: number; readonly toMs: number; readonly unit: "day" | "month" },
): ZoomCell[] {
  const isDay = unit === "day";
  const startOf = (atMs: number) => (isDay ? atMs - (atMs % DAY_MS) : startOfMonth(atMs));
  const endOf = (atMs: number) => (isDay ? atMs + DAY_MS : endOfMonth(atMs));
  const known = Map.groupBy(days, ({ day }) => startOf(Date.parse(day)));
  const first = startOf(Math.min(...days.map(({ day }) => Date.parse(day))));
  const cells: ZoomCell[] = [];
  for (let startsAtMs = startOf(fromMs); startsAtMs < toMs; startsAtMs = endOf(startsAtMs)) {
    const sum = { sealed: 0, open: 0, gap: 0, unwatched: 0, stored: 0 };
    for (const one of known.get(startsAtMs) ?? [])
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += one[name];
    cells.push({
      startsAtMs,
      endsAtMs: endOf(startsAtMs),
      state: startsAtMs < first ? "unwatched" : worstState(sum),
      note: `${sum.sealed} hours sealed, ${sum.open} open, ${sum.gap} lost; ${formatCount(sum.stored)} events`,
    });
  }
  return cells;
}

function worstState({
  gap,
  open,
  sealed,
  unwatched,
}: Record<Exclude<HourStatus, "searched" | "not yet">, number>): HourStatus {
  if (gap > 0) return "gap";
  if (open > 0) return "open";
  if (sealed > 0) return "sealed";
  return unwatched > 0 ? "unwatched" : "not yet";
}
