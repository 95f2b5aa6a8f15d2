import { formatClock, formatMoment } from "../style/words.ts";

export type StripUnit = "hour" | "day" | "month";

export interface Tick {
  /** The cell at whose left edge it stands. */
  readonly index: number;
  readonly label: string;
  /** Left out where there is little room. */
  readonly isMinor: boolean;
}

/** So many cells get a label of their own; with more, every second, third and so on. */
const MOST_LABELS = 12;
const MAJOR_LABELS = 4;
/** Hours of the day, by the length of the strip in hours. */
const HOUR_STEPS = [
  { upTo: 12, step: 1 },
  { upTo: 36, step: 3 },
  { upTo: 80, step: 6 },
  { upTo: Number.POSITIVE_INFINITY, step: 12 },
];

/** Returns the labels below a strip of cells: days in UTC, hours as times are shown. A midnight names its day. */
export function axisTicks(starts: readonly number[], unit: StripUnit): Tick[] {
  if (unit === "hour") return hourTicks(starts);
  const step = Math.ceil(starts.length / MOST_LABELS);
  const major = Math.ceil(starts.length / MAJOR_LABELS / step) * step;
  return starts.flatMap((startsAtMs, index) => {
    if (index % step !== 0) return [];
    const day = new Date(startsAtMs).toISOString();
    return [
      { index, label: unit === "day" ? day.slice(5, 10) : day.slice(0, 7), isMinor: index % major !== 0 },
    ];
  });
}

function hourTicks(starts: readonly number[]): Tick[] {
  const { step = 1 } = HOUR_STEPS.find(({ upTo }) => starts.length <= upTo) ?? {};
  return starts.flatMap((startsAtMs, index) => {
    const hour = Number(formatClock(startsAtMs).slice(0, 2));
    if (hour % step !== 0) return [];
    const isMidnight = hour === 0;
    const label = isMidnight ? formatMoment(startsAtMs).slice(5, 10) : formatClock(startsAtMs).slice(0, 5);
    return [{ index, label, isMinor: !isMidnight && (starts.length > 12 || hour % 3 !== 0) }];
  });
}

/** Returns the name of the period of a cell: the day of an hour, the month of a day, the year of a month. */
export function periodOf(startsAtMs: number, unit: StripUnit): string {
  if (unit === "hour") return formatMoment(startsAtMs).slice(0, 10);
  return new Date(startsAtMs).toISOString().slice(0, unit === "day" ? 7 : 4);
}
