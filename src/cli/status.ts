import type { Command } from "commander";
import type { Queryable } from "../../db/client.ts";
import { readChannelStandings } from "../../db/queries/channel-states.ts";
import { type CoveredHour, readCoveredHours } from "../../db/queries/covered-hours.ts";
import { listZones, readServiceStatus, type ServiceStatus } from "../../db/queries/service-status.ts";
import { readSqlState } from "../../db/sql-state.ts";
import type { Config } from "../config.ts";
import { HOUR_MS, horizonAt, startOfHour } from "../coverage/horizon.ts";
import { readZones, type ZoneCoverage } from "../report/read-zones.ts";
import { nameZone, type Zones } from "../routing/zones.ts";
import { drawHours } from "./draw-hours.ts";
import { createProcessIo, writeOut } from "./edge/edge-io.ts";
import { writeJson } from "./edge/write-json.ts";
import { withStore } from "./open-store.ts";
import { count, many } from "./progress-bar.ts";
import { showTime } from "./read-span.ts";
import { type StoreIo, storeAction, storeCommand } from "./store-command.ts";

const UNDEFINED_TABLE = "42P01";
/** An hour this near to being forgotten, unproven, is worth a line. */
const NEAR_HOURS = 24;

interface ShownZone {
  readonly hours: readonly CoveredHour[];
}

interface ShownStatus extends ServiceStatus {
  readonly now: number;
  /** Given up, to be replayed by hand. */
  readonly notificationsDead: number;
  /** By name, those that do not deliver. */
  readonly channelsDown: readonly string[];
  readonly zones: readonly (ServiceStatus["zones"][number] & ShownZone)[];
}

const HELP = `
The strip has a character for each of the last 72 hours, oldest first: █ sealed as complete, ▒ searched to its end,
░ begun, · not yet, ! lost in part or whole, - not watched from its beginning on.

Examples:
  npm run -s longwatch -- status
  npm run -s longwatch -- status --json`;

/** `longwatch status`: what is stored and what is going on, also while the service does not run. */
export function statusCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("status", "Show what is stored of each zone and what needs attention.", HELP, io)
    .option("--json", "as JSON")
    .action(
      storeAction<{ json?: true }>(io, async (flags, read) => {
        read.finish();
        const config = readConfig();
        const { status, zones } = await withStore(config, ({ db }) => readStatus(db, io.clock()));
        if (flags.json === true) await writeJson(io.stdout, status);
        else await writeOut(io.stdout, describe(status, zones, config.alerting.routing.zones));
      }),
    );
}

function describe(status: ShownStatus, zones: readonly ZoneCoverage[], names: Zones | undefined): string {
  const blocks = status.zones.map((zone) => {
    const { zoneId, events, newestAt, quarantined } = zone;
    const age = newestAt === null ? "none yet" : `newest ${ago(status.now - newestAt)}`;
    const coverage = zones.find((known) => known.zoneId === zoneId);
    const next = coverage?.nextToExpire ?? null;
    return [
      `${nameZone(zoneId, names?.[zoneId]?.name)}   ${many(events, "event")} of the last 72 hours, ${age}`,
      `  ${drawHours(status.now, coverage?.hours ?? [])}`,
      ...(next !== null && next.hoursToLoss < NEAR_HOURS
        ? [`  next to expire: ${showTime(next.startsAt)} UTC, ${next.hoursToLoss.toFixed(1)} hours to loss`]
        : []),
      ...(quarantined > 0 ? [`  ${count(quarantined)} unreadable ${entries(quarantined)} set aside`] : []),
    ];
  });
  const nothing = zones.length === 0 ? ["Nothing is stored yet: run npm start."] : [];
  return [...blocks.flat(), ...nothing, ...describeWork(status), ""].join("\n");
}

/** What is going on, and the command that shows more where there is more. */
function describeWork(status: ShownStatus): string[] {
  const { spikesOpen, alertsFiring, notificationsPending, notificationsDead, channelsDown } = status;
  return [
    `${many(spikesOpen, "open spike")}, ${many(alertsFiring, "unresolved alert")}, ${many(notificationsPending, "notification")} to deliver`,
    ...(alertsFiring > 0 ? ["The alerts: npm run -s longwatch -- alerts list"] : []),
    ...(channelsDown.length > 0
      ? [`Does not deliver: ${channelsDown.join(", ")}: npm run -s longwatch -- deliveries list`]
      : []),
    ...(notificationsDead > 0
      ? [
          `${many(notificationsDead, "notification")} given up: npm run -s longwatch -- deliveries list --state dead`,
        ]
      : []),
  ];
}

function entries(number: number): string {
  return number === 1 ? "entry" : "entries";
}

async function readStatus(
  db: Queryable,
  now: number,
): Promise<{ status: ShownStatus; zones: readonly ZoneCoverage[] }> {
  const from = startOfHour(horizonAt(now));
  const to = now + HOUR_MS;
  const zoneIds = (await listKnownZones(db)) ?? [];
  if (zoneIds.length === 0) return { status: { now, ...NOTHING }, zones: [] };
  const { zones, ...counts } = await readServiceStatus(db, zoneIds, from);
  const hours = await Promise.all(
    zones.map(({ zoneId }) => readCoveredHours(db, zoneId, { fromMs: from, toMs: to })),
  );
  const shown = zones.map((zone, index) => ({ ...zone, hours: hours[index] ?? [] }));
  const channels = await readChannelStandings(db);
  const notificationsDead = channels.reduce((sum, { dead }) => sum + dead, 0);
  const channelsDown = channels.filter(({ state }) => state !== "closed").map(({ channel }) => channel);
  return {
    status: { now, ...counts, notificationsDead, channelsDown, zones: shown },
    zones: await readZones(db, now, { zoneId: undefined, from, to }),
  };
}

const NOTHING = {
  spikesOpen: 0,
  alertsFiring: 0,
  notificationsPending: 0,
  notificationsDead: 0,
  channelsDown: [],
  zones: [],
};

/** Null on a database that the service has never been started on. */
async function listKnownZones(db: Queryable): Promise<number[] | null> {
  try {
    return await listZones(db);
  } catch (thrown) {
    if (readSqlState(thrown) === UNDEFINED_TABLE) return null;
    throw thrown;
  }
}

function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s ago`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3_600)} h ago`;
}
