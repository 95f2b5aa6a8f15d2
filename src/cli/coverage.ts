import type { Command } from "commander";
import { type Paint, paintColour, paintPlain } from "../channel/terminal-style.ts";
import type { Config } from "../config.ts";
import { DAY_MS, startOfDay } from "../coverage/horizon.ts";
import type { Standing } from "../report/hour-standing.ts";
import { readZones, type ZoneCoverage } from "../report/read-zones.ts";
import { nameZone, type Zones } from "../routing/zones.ts";
import { drawDays, drawLegend } from "./coverage/draw-days.ts";
import { createProcessIo, writeOut } from "./edge/edge-io.ts";
import { writeJson } from "./edge/write-json.ts";
import { withStore } from "./open-store.ts";
import { count } from "./progress-bar.ts";
import { readSpan, readZone, type SpanFlags, showTime } from "./read-span.ts";
import { type StoreIo, storeAction, storeCommand } from "./store-command.ts";

/** Exit code of `coverage` and `gaps` when an hour that was asked about is lost. */
export const GAP_EXIT_CODE = 3;
const DAYS_SHOWN = 7;

const HELP = `
A row is a UTC day, a cell an hour:
  █ sealed     proven complete: read twice, counts equal to the platform's, nothing new since
  ▒ searched   read to its end, not yet proven
  ░ open       still to be read
  ! gap        forgotten by the platform before it was proven complete
  - unwatched  partly forgotten already when the zone was first watched
  · not yet    has not begun
Reads the database only; the service need not run. Exit code 0; 3 when a gap lies in the span.

Examples:
  npm run -s longwatch -- coverage
  npm run -s longwatch -- coverage --zone 101 --from -90d
  npm run -s longwatch -- coverage --from 2026-11-01 --to 2026-12-01 --json`;

type Flags = SpanFlags & { readonly json?: true };

/** `longwatch coverage`: where every hour of every zone stands. */
export function coverageCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("coverage", "Show whether every hour is complete.", HELP, io)
    .option("--zone <id>", "one shield zone (default: all)")
    .option("--from <time>", "start: ISO-8601, epoch ms, relative such as -30d (default: 7 days ago)")
    .option("--to <time>", "end (default: the end of today)")
    .option("--json", "every hour with state, counts and evidence, as JSON")
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
        const zones = await withStore(config, ({ db }) => readZones(db, now, { zoneId, from, to }));
        const names = config.alerting.routing.zones;
        if (flags.json === true) await writeJson(io.stdout, toJson(zones, { now, from, to }));
        else await writeOut(io.stdout, draw(zones, zoneId, names, pickPaint(io)));
        if (zones.some(({ hours }) => countStandings(hours).gap > 0)) io.setExitCode(GAP_EXIT_CODE);
      }),
    );
}

function pickPaint({ stdout }: StoreIo): Paint {
  // A terminal's own answer heeds NO_COLOR and TERM.
  return stdout.isTTY === true && stdout.hasColors?.() !== false ? paintColour : paintPlain;
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
    return `${paint("bold", nameZone(zone.zoneId, names?.[zone.zoneId]?.name))}   ${describeCounts(zone)}\n${rows.join("")}${describeNext(zone)}\n`;
  });
  return `${blocks.join("\n")}\n${drawLegend(paint)}\n`;
}

export function describeNothing(zoneId: number | undefined): string {
  const what = zoneId === undefined ? "" : ` of zone ${zoneId}`;
  return `Nothing is stored${what} yet: run npm start.\n`;
}

function describeCounts({ hours }: ZoneCoverage): string {
  const { sealed, searched, open, gap } = countStandings(hours);
  const stored = hours.reduce((sum, { storedCount }) => sum + storedCount, 0);
  const gaps = gap === 1 ? "1 hour lost" : `${gap} hours lost`;
  return `${sealed} sealed, ${searched} searched, ${open} open, ${gaps}; ${count(stored)} events`;
}

function describeNext({ nextToExpire }: ZoneCoverage): string {
  if (nextToExpire === null)
    return "nothing can be lost: every ended hour that the platform still has is sealed";
  const { startsAt, hoursToLoss } = nextToExpire;
  return `next to expire: ${showTime(startsAt)} UTC, ${hoursToLoss.toFixed(1)} hours to loss`;
}

function countStandings(hours: ZoneCoverage["hours"]): Record<Standing, number> {
  const counts: Record<Standing, number> = {
    sealed: 0,
    searched: 0,
    open: 0,
    gap: 0,
    unwatched: 0,
    "not yet": 0,
  };
  for (const { standing } of hours) counts[standing]++;
  return counts;
}

function toJson(zones: readonly ZoneCoverage[], span: { now: number; from: number; to: number }) {
  return { ...span, zones: zones.map((zone) => ({ ...zone, counts: countStandings(zone.hours) })) };
}
