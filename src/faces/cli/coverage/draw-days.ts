import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import type { HourStatus } from "#model/kinds.ts";
import type { AssessedHour } from "#stages/coverage/hour-status.ts";
import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";

const CELLS: Record<HourStatus, { readonly cell: string; readonly style: Style }> = {
  sealed: { cell: "█", style: "green" },
  searched: { cell: "▒", style: "cyan" },
  open: { cell: "░", style: "yellow" },
  gap: { cell: "!", style: "red" },
  unwatched: { cell: "-", style: "dim" },
  "not yet": { cell: "·", style: "dim" },
};

/** Returns the character of an hour. */
export function cellOf(status: HourStatus): string {
  return CELLS[status].cell;
}

const SCALE = `${" ".repeat(12)}00    06    12    18`;

/** Returns one row per UTC day with one character per hour. Hours outside the span and unknown hours are blank. */
export function drawDays(hours: readonly AssessedHour[], paint: Paint): string[] {
  const days = new Map<number, AssessedHour[]>();
  for (const hour of hours) {
    const day = startOfDay(hour.startsAt);
    const row = days.get(day);
    if (row === undefined) days.set(day, [hour]);
    else row.push(hour);
  }
  if (days.size === 0) return [];
  return [SCALE, ...[...days].map(([day, row]) => `${toDay(day)}  ${drawDay(day, row, paint)}`)];
}

function drawDay(day: number, row: readonly AssessedHour[], paint: Paint): string {
  const statuses = new Map(row.map(({ startsAt, status }) => [startsAt, status]));
  let line = "";
  let run = "";
  let last: HourStatus | undefined;
  const flush = () => {
    if (run !== "") line += last === undefined ? run : paint(CELLS[last].style, run);
    run = "";
  };
  for (let hour = day; hour < day + DAY_MS; hour += HOUR_MS) {
    const status = statuses.get(hour);
    if (status !== last) flush();
    last = status;
    run += status === undefined ? " " : CELLS[status].cell;
  }
  flush();
  return line.trimEnd();
}

/** Returns the legend of the characters. */
export function drawLegend(paint: Paint): string {
  const parts = Object.entries(CELLS).map(([name, { cell, style }]) => `${paint(style, cell)} ${name}`);
  return parts.join("   ");
}
