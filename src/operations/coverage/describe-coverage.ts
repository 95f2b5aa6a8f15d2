import { formatDuration, formatWhole, many, showTime } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { HourStatus } from "#model/kinds.ts";
import { nameZone } from "#model/zones.ts";
import type { Paint } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { drawDays, drawLegend } from "./draw-days.ts";
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
          `The platform has kept events for only ${formatDuration(keptHours * HOUR_MS)} since ${show(since)} UTC.`,
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
  const gaps = gap === 1 ? "1 hour lost" : `${gap} hours lost`;
  return `${count("sealed")} sealed, ${count("searched")} searched, ${count("open")} open, ${gaps}; ${formatWhole(stored)} events`;
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
      ({ since, reason }) => `The platform has given incomplete answers since ${show(since)} UTC: ${reason}`,
    ),
    ...(unjudged.length === 0
      ? []
      : [
          `${many(unjudged.length, "hour")} copied and not judged yet, since ${show(unjudged[0]?.startsAt ?? "")} UTC: they are judged once every hour from there on is copied`,
        ]),
    ...[...waiting].map(([reason, { length }]) => `${many(length, "hour")} not sealed yet: ${reason}`),
    ...hours
      .filter(isReopened)
      .map(({ startsAt, reopenReason }) => `reopened hour: ${show(startsAt)} UTC. ${reopenReason ?? ""}`),
  ];
}

function describeNext({ nextToExpire: next }: Zone, now: number): string {
  if (next === null) return "no hour is at risk: every ended hour that the platform still has is sealed";
  const hoursToLoss = (Date.parse(next.expiresAt) - now) / HOUR_MS;
  return `next to expire: ${show(next.startsAt)} UTC, ${hoursToLoss.toFixed(1)} hours to loss`;
}

function show(time: string): string {
  return showTime(Date.parse(time));
}
