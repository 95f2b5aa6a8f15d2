import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { configuredChannels } from "#config/configured-channels.ts";
import type { Queryable } from "#db/client.ts";
import { readStatus, type StatusAnswer, toServiceItem } from "#faces/http/routes/v1/status.ts";
import { ago } from "#lib/ago.ts";
import { formatBytes } from "#lib/disk-space.ts";
import { escapeText } from "#lib/escape-text.ts";
import { many } from "#lib/format.ts";
import { asCalled } from "#lib/own-command.ts";
import { toLine } from "#lib/plain-text.ts";
import { readSqlState } from "#lib/sql-state.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { nameZone, type Zones } from "#model/zones.ts";
import { GAP_EXIT_CODE } from "#operations/coverage/hours.ts";
import { type Attention, type Looked, listAttention } from "#operations/list-attention.ts";
import { lookAround } from "#operations/look-around.ts";
import { readUnpolled } from "#operations/read-unpolled.ts";
import { readZones, type ZoneCoverage } from "#operations/read-zones.ts";
import { assessService } from "#operations/service-life.ts";
import type { Paint } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { describePastOutage } from "../start/describe-outage.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { drawHours } from "../terminal/draw-hours.ts";
import { pickPaint } from "../terminal/pick-paint.ts";
import { describeService } from "./describe-service.ts";

const UNDEFINED_TABLE = "42P01";

const HELP = `
The first table shows the processes of the service and when each was last alive; a process that is silent for a minute
counts as gone. Then each zone follows, with one character for each of the last 72 hours, oldest first: █ sealed,
▒ searched to its end, ░ open, · not yet, ! lost completely or in part, - already partly forgotten when the zone was first
watched.

Exit codes:
  0   nothing needs attention
  1   something needs attention, and the last lines name it: a role without a live process, a missing pseudonym key,
      events held back until the key is present, a zone without a successful poll for five minutes, a zone with
      incomplete answers of the platform, a channel that does not deliver, dead notifications of the last 72 hours, an
      hour that expires within a day and is not sealed, an unresolved alert of Longwatch about itself; also if the
      database cannot be reached
  2   a mistake in the command line or the settings
  3   only lost hours need attention

Examples:
  npm run -s longwatch -- status
  npm run -s longwatch -- status --json`;

/** `longwatch status`: shows whether the service runs, the stored events and everything that needs attention. */
export function statusCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand(
    "status",
    "Show whether the service runs, the stored events, and what needs attention.",
    HELP,
    io,
  )
    .option("--json", "print the answer of GET /api/v1/status")
    .action(
      storeAction<{ json?: true }>(io, async (flags, read) => {
        read.finish();
        const config = readConfig();
        const seen = await withStore(config, ({ db }) => look(db, io.clock(), config));
        const attention = listAttention(seen, configuredChannels(config));
        const outage = config.databaseUrl === null ? describePastOutage(config.dataDir, io.clock()) : [];
        if (flags.json === true) await writeJson(io.stdout, { ...seen.status, attention });
        else
          await writeOut(
            io.stdout,
            [
              describe(seen, attention, { names: config.alerting.routing.zones, paint: pickPaint(io) }),
              ...outage.map((line) => `${escapeText(line)}\n`),
            ].join(""),
          );
        io.setExitCode(exitCodeOf(attention));
      }),
    );
}

function exitCodeOf(attention: readonly Attention[]): number {
  if (attention.length === 0) return 0;
  return attention.every(({ kind }) => kind === "gap") ? GAP_EXIT_CODE : 1;
}

interface Seen extends Looked {
  readonly status: StatusAnswer;
  readonly now: number;
}

async function look(db: Queryable, now: number, { alerting, pollEveryMs }: Config): Promise<Seen> {
  try {
    const from = startOfHour(horizonAt(now));
    return {
      now,
      ...(await lookAround(db, now)),
      status: await readStatus(db, null, { now, names: alerting.routing.zones ?? {} }),
      unpolled: await readUnpolled(db, now, { zoneIds: null, pollEveryMs }),
      zones: await readZones(db, now, { zoneId: undefined, from, to: now + HOUR_MS }),
    };
  } catch (thrown) {
    if (readSqlState(thrown) === UNDEFINED_TABLE && (await isUntouched(db))) return neverStarted(now);
    throw thrown;
  }
}

/** Returns whether the service has never been started on the database. */
async function isUntouched(db: Queryable): Promise<boolean> {
  const { rows } = await db.execute<{ exists: boolean }>(
    "select to_regclass('coverage_windows') is not null as exists",
  );
  return rows[0]?.exists !== true;
}

function neverStarted(now: number): Seen {
  const service = assessService([]);
  const nothing = { spikesOpen: 0, alertsFiring: 0, alertsAcknowledged: 0, notificationsPending: 0 };
  const status: StatusAnswer = {
    now: new Date(now).toISOString(),
    ...nothing,
    hoursToLoss: null,
    zones: [],
    channels: [],
    archive: [],
    service: toServiceItem(service),
  };
  return {
    now,
    status,
    channels: [],
    service,
    zones: [],
    unpolled: [],
    keyProblem: null,
    held: [],
    newlyWatched: new Map(),
    givenUp: 0,
    selfAlerts: 0,
  };
}

interface Drawn {
  readonly names: Zones | undefined;
  readonly paint: Paint;
}

function describe(seen: Seen, attention: readonly Attention[], drawn: Drawn): string {
  const { paint } = drawn;
  const { status, service, zones, now } = seen;
  const nothing = zones.length === 0 ? [asCalled("No data is stored yet: run npm start.")] : [];
  return [
    describeService(service, paint),
    ...status.zones.flatMap((zone) => describeZone(zone, zones, now, drawn)),
    ...nothing,
    ...describeWork(status),
    ...describeArchive(status.archive),
    ...describeAttention(attention, paint),
    "",
  ].join("\n");
}

function describeZone(
  { id, newestEventAt, quarantined }: StatusAnswer["zones"][number],
  zones: readonly ZoneCoverage[],
  now: number,
  { names, paint }: Drawn,
): string[] {
  const age = newestEventAt === null ? "none yet" : `newest ${ago(now - Date.parse(newestEventAt))}`;
  const hours = zones.find(({ zoneId }) => zoneId === id)?.hours ?? [];
  const events = hours.reduce((sum, { storedCount }) => sum + storedCount, 0);
  return [
    `${paint("bold", nameZone(id, names?.[id]?.name))}   ${many(events, "event")} in the last 72 hours, ${age}`,
    `  ${drawHours(now, hours)}`,
    ...(quarantined > 0
      ? [`  ${many(quarantined, "unreadable entry", "unreadable entries")} in quarantine`]
      : []),
  ];
}

/** Returns the open work in one line, and the command that lists the alerts if there are any. */
function describeWork({ spikesOpen, alertsFiring, alertsAcknowledged, notificationsPending }: StatusAnswer) {
  const unresolved = alertsFiring + alertsAcknowledged;
  return [
    `${many(spikesOpen, "open spike")}, ${many(unresolved, "unresolved alert")}, ${many(notificationsPending, "notification")} to deliver`,
    ...(unresolved > 0 ? [asCalled("To list the alerts: npm run -s longwatch -- alerts list")] : []),
  ];
}

function describeArchive(zones: StatusAnswer["archive"]): string[] {
  if (zones.length === 0) return [];
  const sum = (valueOf: (zone: StatusAnswer["archive"][number]) => number) =>
    zones.reduce((total, zone) => total + valueOf(zone), 0);
  const bytes = formatBytes(sum(({ eventBytes, recordBytes }) => eventBytes + recordBytes));
  const since = zones.map(({ firstDay }) => firstDay).sort()[0] ?? "";
  const damaged = sum(({ damagedFiles }) => damagedFiles);
  const problem = damaged === 0 ? "" : `, ${many(damaged, "damaged file")}`;
  return [
    `archive: ${many(
      sum(({ days }) => days),
      "day",
    )} of ${many(zones.length, "zone")} since ${since}, ${many(
      sum(({ events }) => events),
      "event",
    )}, ${bytes}${problem}`,
  ];
}

function describeAttention(attention: readonly Attention[], paint: Paint): string[] {
  if (attention.length === 0) return [];
  const lines = attention.map(({ text, command }) => {
    const more = command === null ? "" : asCalled(`: npm run -s longwatch -- ${command}`);
    return `  ${toLine(text, 300)}${more}`;
  });
  return [paint("bold", "Needs attention:"), ...lines];
}
