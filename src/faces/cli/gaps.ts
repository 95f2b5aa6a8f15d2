import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { toGap } from "#faces/http/routes/v1/gaps.ts";
import { shortenText } from "#lib/escape-text.ts";
import { formatWhole, many } from "#lib/format.ts";
import { showTime } from "#lib/show-time.ts";
import { nameZone, type Zones } from "#model/zones.ts";
import { toIso } from "#operations/fields.ts";
import { readZones } from "#operations/read-zones.ts";
import { type Gap, joinGaps } from "#stages/coverage/join-gaps.ts";
import { describeNothing, GAP_EXIT_CODE } from "./coverage/coverage.ts";
import { createProcessIo, writeOut } from "./edge/edge-io.ts";
import { writeJson } from "./edge/write-json.ts";
import { readSpan, readZone, type SpanFlags } from "./options/read-span.ts";
import { requireZones } from "./options/require-known.ts";
import { withStore } from "./store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "./store/store-command.ts";

/** Longwatch writes short reasons. A longer reason in the database must not fill the screen. */
const MAX_REASON_CHARS = 200;
const MAX_REASONS = 5;

const HELP = `
A gap is one or more hours in a row that the platform forgot before they were sealed. The events of a gap that are stored
stay stored. The command reads only the database. Exit code 0; 2 if the zone is neither configured nor stored; 3 if the
span has a gap.

Examples:
  npm run -s longwatch -- gaps
  npm run -s longwatch -- gaps --zone 101 --from -90d
  npm run -s longwatch -- gaps --from 2026-11-01 --to 2026-12-01 --json`;

type Flags = SpanFlags & { readonly json?: true };

interface ZoneGaps {
  readonly zoneId: number;
  /** Start of the first hour that was read. */
  readonly from: number;
  readonly gaps: readonly Gap[];
}

/** `longwatch gaps`: lists the lost hours with the reasons. */
export function gapsCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("gaps", "List the hours that are lost, and why.", HELP, io)
    .option("--zone <id>", "one shield zone (default: all)")
    .option(
      "--from <time>",
      "start: ISO-8601, epoch ms, relative such as -30d (default: the first known hour)",
    )
    .option("--to <time>", "end (default: now)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const now = io.clock();
        const zoneId = readZone(read, flags, false);
        const { from, to } = readSpan(read, flags, { from: 0, to: now });
        read.finish();
        const config = readConfig();
        const found = await withStore(config, async ({ db }) => {
          await requireZones(db, config, zoneId === undefined ? [] : [zoneId]);
          return readZones(db, now, { zoneId, from, to });
        });
        const names = config.alerting.routing.zones;
        const zones = found.map(({ zoneId: id, hours, firstHour }) => ({
          zoneId: id,
          from: Math.max(from, firstHour),
          gaps: joinGaps(hours),
        }));
        if (flags.json === true) await writeJson(io.stdout, toJson(zones, { now, from, to }));
        else
          await writeOut(
            io.stdout,
            zones.length === 0 ? describeNothing(zoneId) : describe(zones, to, names),
          );
        if (zones.some(({ gaps }) => gaps.length > 0)) io.setExitCode(GAP_EXIT_CODE);
      }),
    );
}

/** Returns the answer of `GET /api/v1/gaps`. */
function toJson(zones: readonly ZoneGaps[], span: { now: number; from: number; to: number }) {
  return {
    items: zones.flatMap(({ zoneId, gaps }) => gaps.map((gap) => toGap({ ...gap, zoneId }))),
    next: null,
    now: toIso(span.now),
    from: toIso(span.from),
    to: toIso(span.to),
  };
}

function describe(zones: readonly ZoneGaps[], to: number, names: Zones | undefined): string {
  return zones
    .map(({ zoneId, from, gaps }) => {
      const zone = nameZone(zoneId, names?.[zoneId]?.name);
      const span = `${showTime(from)} to ${showTime(to)} UTC`;
      if (gaps.length === 0) return `${zone}: no gap from ${span}.\n`;
      const hours = gaps.reduce((sum, gap) => sum + gap.hours, 0);
      const head = `${zone}: ${many(gaps.length, "gap")}, ${many(hours, "hour")}, from ${span}\n`;
      return head + gaps.map(describeGap).join("");
    })
    .join("");
}

function describeGap({ from, to, hours, storedCount, upstreamCount, reasons }: Gap): string {
  const counted =
    upstreamCount === null
      ? "the platform was never asked"
      : `the platform last counted ${formatWhole(upstreamCount)}`;
  const shown = reasons
    .slice(0, MAX_REASONS)
    .map((reason) => `    ${shortenText(reason, MAX_REASON_CHARS)}\n`);
  const more = reasons.length > MAX_REASONS ? [`    and ${reasons.length - MAX_REASONS} more reasons\n`] : [];
  return [
    `  ${showTime(from)} to ${showTime(to)} UTC   ${many(hours, "hour")}, ${many(storedCount, "event")} stored, ${counted}\n`,
    ...shown,
    ...more,
  ].join("");
}
