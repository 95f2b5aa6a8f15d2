import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { toHorizons, toHour } from "#faces/http/routes/v1/coverage.ts";
import { formatDuration, formatWhole, many } from "#lib/format.ts";
import { asCalled } from "#lib/own-command.ts";
import { showTime } from "#lib/show-time.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import type { HourStatus } from "#model/kinds.ts";
import { nameZone, type Zones } from "#model/zones.ts";
import { toIso } from "#operations/fields.ts";
import { readZones, type ZoneCoverage } from "#operations/read-zones.ts";
import type { Paint } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { readSpan, readZone, type SpanFlags } from "../options/read-span.ts";
import { requireZones } from "../options/require-known.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { pickPaint } from "../terminal/pick-paint.ts";
import { drawDays, drawLegend } from "./draw-days.ts";
import { withdrawCommand } from "./withdraw.ts";

/** Exit code of `coverage` and `gaps` if an hour of the span is lost. */
export const GAP_EXIT_CODE = 3;
const DAYS_SHOWN = 7;

const HELP = `
Each row is a UTC day; each character is an hour:
  █ sealed     complete: search, list and counts of the platform show exactly the stored events
  ▒ searched   read to its end, not sealed yet
  ░ open       not read to its end yet
  ! gap        lost: the platform forgot the hour before it was sealed
  - unwatched  already partly forgotten by the platform when the zone was first watched
  · not yet    in the future
The command reads only the database; the service need not run. Exit code 0; 2 if the zone is neither configured nor
stored; 3 if the span has a gap.

Examples:
  npm run -s longwatch -- coverage
  npm run -s longwatch -- coverage --zone 101 --from -90d
  npm run -s longwatch -- coverage --from 2026-11-01 --to 2026-12-01 --json`;

type Flags = SpanFlags & { readonly json?: true };

/** `longwatch coverage`: shows the state of every hour of every zone. */
export function coverageCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const command = storeCommand("coverage", "Show whether every hour is complete.", HELP, io)
    .option("--zone <id>", "one shield zone (default: all)")
    .option("--from <time>", "start: ISO-8601, epoch ms, relative such as -30d (default: 7 days ago)")
    .option("--to <time>", "end (default: the end of today)")
    .option("--json", "print the answer of GET /api/v1/coverage: every hour with state, counts and evidence")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const now = io.clock();
        const zoneId = readZone(read, flags, false);
        const today = startOfDay(now);
        const { from, to } = readSpan(read, flags, {
          from: today - (DAYS_SHOWN - 1) * DAY_MS,
          to: today + DAY_MS,
        });
        read.finish();
        const config = readConfig();
        const zones = await withStore(config, async ({ db }) => {
          await requireZones(db, config, zoneId === undefined ? [] : [zoneId]);
          return readZones(db, now, { zoneId, from, to });
        });
        const names = config.alerting.routing.zones;
        if (flags.json === true) await writeJson(io.stdout, toJson(zones, { now, from, to }));
        else await writeOut(io.stdout, draw(zones, zoneId, names, pickPaint(io)));
        if (zones.some(({ hours }) => countStatuses(hours).gap > 0)) io.setExitCode(GAP_EXIT_CODE);
      }),
    );
  return command.addCommand(withdrawCommand(readConfig, io));
}

function draw(
  zones: readonly ZoneCoverage[],
  asked: number | undefined,
  names: Zones | undefined,
  paint: Paint,
): string {
  if (zones.length === 0) return describeNothing(asked);
  const blocks = zones.map((zone) => {
    const rows = drawDays(zone.hours, paint).map((row) => `${row}\n`);
    const more = [describeNext(zone), ...describeDoubts(zone)].map((line) => `${line}\n`).join("");
    return `${paint("bold", nameZone(zone.zoneId, names?.[zone.zoneId]?.name))}   ${describeCounts(zone)}\n${rows.join("")}${more}`;
  });
  return `${blocks.join("\n")}\n${drawLegend(paint)}\n`;
}

export function describeNothing(zoneId: number | undefined): string {
  const where = zoneId === undefined ? "" : ` for zone ${zoneId}`;
  return asCalled(`No data is stored${where} yet: run npm start.\n`);
}

function describeCounts({ hours }: ZoneCoverage): string {
  const { sealed, searched, open, gap } = countStatuses(hours);
  const stored = hours.reduce((sum, { storedCount }) => sum + storedCount, 0);
  const gaps = gap === 1 ? "1 hour lost" : `${gap} hours lost`;
  return `${sealed} sealed, ${searched} searched, ${open} open, ${gaps}; ${formatWhole(stored)} events`;
}

/** Lists how long the platform keeps events if that is not 72 hours, the reasons why hours of the zone are not sealed, and the hours that were reopened. */
function describeDoubts({ hours, suspicions, horizon: { keptMs, since } }: ZoneCoverage): string[] {
  const waiting = hours.flatMap(({ notSealedBecause }) => notSealedBecause ?? []);
  const reopened = hours.filter(({ state, reopenedAt }) => state === "open" && reopenedAt !== null);
  return [
    ...(keptMs === null || since === null
      ? []
      : [`The platform has kept events for only ${formatDuration(keptMs)} since ${showTime(since)} UTC.`]),
    ...suspicions.map(
      ({ since, reason }) =>
        `The platform has given incomplete answers since ${showTime(since)} UTC: ${reason}`,
    ),
    ...[...Map.groupBy(waiting, (reason) => reason)].map(
      ([reason, of]) => `${many(of.length, "hour")} not sealed yet: ${reason}`,
    ),
    ...reopened.map(
      ({ startsAt, reopenReason }) => `reopened hour: ${showTime(startsAt)} UTC. ${reopenReason ?? ""}`,
    ),
  ];
}

function describeNext({ nextToExpire }: ZoneCoverage): string {
  if (nextToExpire === null)
    return "no hour is at risk: every ended hour that the platform still has is sealed";
  const { startsAt, hoursToLoss } = nextToExpire;
  return `next to expire: ${showTime(startsAt)} UTC, ${hoursToLoss.toFixed(1)} hours to loss`;
}

function countStatuses(hours: ZoneCoverage["hours"]): Record<HourStatus, number> {
  const counts: Record<HourStatus, number> = {
    sealed: 0,
    searched: 0,
    open: 0,
    gap: 0,
    unwatched: 0,
    "not yet": 0,
  };
  for (const { status } of hours) counts[status]++;
  return counts;
}

/** Returns the hours of all zones as `GET /api/v1/coverage` does, with the totals of each zone. */
function toJson(zones: readonly ZoneCoverage[], span: { now: number; from: number; to: number }) {
  return {
    items: zones.flatMap(({ zoneId, hours }) => hours.map((hour) => toHour({ ...hour, zoneId }))),
    next: null,
    horizons: zones.flatMap(({ zoneId, horizon }) => toHorizons(zoneId, horizon)),
    now: toIso(span.now),
    from: toIso(span.from),
    to: toIso(span.to),
    zones: zones.map(({ zoneId, firstHour, nextToExpire, hours }) => ({
      zoneId,
      firstHour: toIso(firstHour),
      nextToExpire: nextToExpire && { ...nextToExpire, startsAt: toIso(nextToExpire.startsAt) },
      counts: countStatuses(hours),
    })),
  };
}
