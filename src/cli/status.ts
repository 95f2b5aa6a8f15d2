import { Command } from "commander";
import type { Queryable } from "../../db/client.ts";
import { type CoveredHour, readCoveredHours } from "../../db/queries/covered-hours.ts";
import { listZones, readServiceStatus, type ServiceStatus } from "../../db/queries/service-status.ts";
import { readSqlState } from "../../db/sql-state.ts";
import type { Config } from "../config.ts";
import { HOUR_MS, horizonAt, startOfHour } from "../coverage/horizon.ts";
import { drawHours } from "./draw-hours.ts";
import { withStore } from "./open-store.ts";
import { count } from "./progress-bar.ts";

const UNDEFINED_TABLE = "42P01";

interface ShownStatus extends ServiceStatus {
  readonly now: number;
  readonly zones: readonly (ServiceStatus["zones"][number] & { readonly hours: readonly CoveredHour[] })[];
}

const HELP = `
The strip has a character for each of the last 72 hours, oldest first: █ sealed as complete, ▒ searched to its end,
░ begun, · not yet, ! lost in part or whole.

Examples:
  npm run -s longwatch -- status
  npm run -s longwatch -- status --json`;

/** `longwatch status`: what is stored and what is going on, also while the service does not run. */
export function statusCommand(readConfig: () => Config): Command {
  return new Command("status")
    .description("Show what is stored of each zone and what needs attention.")
    .option("--json", "as JSON")
    .addHelpText("after", HELP)
    .action(({ json }: { json?: true }) => run(readConfig(), json === true));
}

async function run(config: Config, isJson: boolean): Promise<void> {
  const status = await withStore(config, ({ db }) => readStatus(db, Date.now()));
  if (isJson) {
    process.stdout.write(`${JSON.stringify(status, null, 2)}\n`);
    return;
  }
  for (const { zoneId, events, newestAt, quarantined, hours } of status.zones) {
    const age = newestAt === null ? "none yet" : `newest ${ago(status.now - newestAt)}`;
    process.stdout.write(`zone ${zoneId}   ${count(events)} events of the last 72 hours, ${age}\n`);
    process.stdout.write(`  ${drawHours(status.now, hours)}\n`);
    if (quarantined > 0) process.stdout.write(`  ${count(quarantined)} entries set aside\n`);
  }
  if (status.zones.length === 0) process.stdout.write("Nothing is stored yet: run npm start.\n");
  const { spikesOpen, alertsFiring, notificationsPending } = status;
  process.stdout.write(
    `${spikesOpen} open spikes, ${alertsFiring} unresolved alerts, ${notificationsPending} notifications to deliver\n`,
  );
}

async function readStatus(db: Queryable, now: number): Promise<ShownStatus> {
  const fromMs = startOfHour(horizonAt(now));
  const zoneIds = await listKnownZones(db);
  if (zoneIds === null) return { now, zones: [], spikesOpen: 0, alertsFiring: 0, notificationsPending: 0 };
  const { zones, ...counts } = await readServiceStatus(db, zoneIds, fromMs);
  const searched = await Promise.all(
    zones.map(({ zoneId }) => readCoveredHours(db, zoneId, { fromMs, toMs: now + HOUR_MS })),
  );
  return { now, ...counts, zones: zones.map((zone, index) => ({ ...zone, hours: searched[index] ?? [] })) };
}

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
