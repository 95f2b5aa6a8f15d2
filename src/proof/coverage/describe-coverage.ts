/** Coverage as text. */

import type { Paint, Style } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { formatDuration, formatWhole, many, showTime } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import type { HourStatus } from "#model/kinds.ts";
import { nameZone } from "#model/zones.ts";
import { type AssessedHour, hoursToLoss } from "#proof/rules/hour-status.ts";
import type { CoverageAnswer, CoverageHour } from "./hours.ts";

type Zone = CoverageAnswer["zones"][number];

/** Returns the hours of each zone as one row per day, with what can still be lost and why hours are not sealed. */
export function describeCoverage(
  { items, zones, horizons }: CoverageAnswer,
  {
    now,
    input,
    paint,
  }: { readonly now: number; readonly input: { readonly zone?: string | undefined }; readonly paint: Paint },
): string {
  if (zones.length === 0) return describeNothing(input.zone);
  const hoursOf = Map.groupBy(items, ({ zoneId }) => zoneId);
  const blocks = zones.map((zone) => {
    const hours = hoursOf.get(zone.zoneId) ?? [];
    const drawn = hours.map(({ startsAt, state }) => ({ startsAt: Date.parse(startsAt), status: state }));
    const kept = horizons
      .filter(({ zoneId }) => zoneId === zone.zoneId)
      .map(
        ({ keptHours, since }) =>
          `The platform has kept events for only ${formatDuration(keptHours * HOUR_MS)} since ${showTime(since)} UTC.`,
      );
    const head = `${paint("bold", nameZone(zone.zoneId, zone.name))}   ${describeCounts(hours)}`;
    const rows = [head, ...drawDays(drawn, paint), describeNext(zone, now), ...kept];
    return [...rows, ...describeDoubts(zone, hours)].map((line) => `${line}\n`).join("");
  });
  return `${blocks.join("\n")}\n${drawLegend(paint)}\n`;
}

export function describeNothing(zone: string | undefined): string {
  const where = zone === undefined ? "" : ` for zone ${zone}`;
  return asCalled(`No data is stored${where} yet: run npm start.\n`);
}

function describeCounts(hours: readonly CoverageHour[]): string {
  const count = (status: HourStatus) => hours.filter(({ state }) => state === status).length;
  const gap = count("gap");
  const stored = hours.reduce((sum, { storedCount }) => sum + storedCount, 0);
  const imported = count("imported") === 0 ? "" : `, ${count("imported")} imported`;
  const gaps = gap === 1 ? "1 hour lost" : `${gap} hours lost`;
  return `${count("sealed")} sealed, ${count("searched")} searched, ${count("open")} open, ${gaps}${imported}; ${formatWhole(stored)} events`;
}

/** Lists the reasons why hours of the zone are not sealed or not judged, and the hours that were reopened. */
function describeDoubts({ suspicions }: Zone, hours: readonly CoverageHour[]): string[] {
  const waiting = Map.groupBy(
    hours.filter(({ notSealedBecause }) => notSealedBecause !== null),
    ({ notSealedBecause }) => notSealedBecause,
  );
  const unjudged = hours.filter(({ isWaiting }) => isWaiting);
  const isReopened = ({ state, reopenedAt }: CoverageHour) =>
    (state === "open" || state === "searched") && reopenedAt !== null;
  return [
    ...suspicions.map(
      ({ since, reason }) =>
        `The platform has given incomplete answers since ${showTime(since)} UTC: ${reason}`,
    ),
    ...(unjudged.length === 0
      ? []
      : [
          `${many(unjudged.length, "hour")} copied and not judged yet, since ${showTime(unjudged[0]?.startsAt ?? "")} UTC: they are judged once every hour from there on is copied`,
        ]),
    ...[...waiting].map(([reason, { length }]) => `${many(length, "hour")} not sealed yet: ${reason}`),
    ...hours
      .filter(isReopened)
      .map(({ startsAt, reopenReason }) => `reopened hour: ${showTime(startsAt)} UTC. ${reopenReason ?? ""}`),
  ];
}

function describeNext({ nextToExpire: next }: Zone, now: number): string {
  if (next === null) return "no hour is at risk: every ended hour that the platform still has is sealed";
  const hours = hoursToLoss({ leftMs: Date.parse(next.expiresAt) - now }) ?? 0;
  return `next to expire: ${showTime(next.startsAt)} UTC, ${hours.toFixed(1)} hours to loss`;
}

export type DrawnHour = Pick<AssessedHour, "startsAt" | "status">;

const CELLS: Record<HourStatus, { readonly cell: string; readonly style: Style }> = {
  sealed: { cell: "█", style: "green" },
  searched: { cell: "▒", style: "cyan" },
  open: { cell: "░", style: "yellow" },
  gap: { cell: "!", style: "red" },
  imported: { cell: "i", style: "cyan" },
  unwatched: { cell: "-", style: "dim" },
  "not yet": { cell: "·", style: "dim" },
};

/** Returns the character of an hour. */
export function cellOf(status: HourStatus): string {
  return CELLS[status].cell;
}

const SCALE = `${" ".repeat(12)}00    06    12    18`;

/** Returns one row per UTC day with one character per hour. Hours outside the span and unknown hours are blank. */
function drawDays(hours: readonly DrawnHour[], paint: Paint): string[] {
  const days = new Map<number, DrawnHour[]>();
  for (const hour of hours) {
    const day = startOfDay(hour.startsAt);
    const row = days.get(day);
    if (row === undefined) days.set(day, [hour]);
    else row.push(hour);
  }
  if (days.size === 0) return [];
  return [SCALE, ...[...days].map(([day, row]) => `${toDay(day)}  ${drawDay(day, row, paint)}`)];
}

function drawDay(day: number, row: readonly DrawnHour[], paint: Paint): string {
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
function drawLegend(paint: Paint): string {
  const parts = Object.entries(CELLS).map(([name, { cell, style }]) => `${paint(style, cell)} ${name}`);
  return parts.join("   ");
}
