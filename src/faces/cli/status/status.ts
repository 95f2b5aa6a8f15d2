import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Queryable } from "#db/client.ts";
import type { Paint, Style } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { describeNeverStarted } from "#health/service/attention.ts";
import { describeErasedFile, describeStorage } from "#health/service/settings.ts";
import { type StatusAnswer, showStatus, toServiceItem } from "#health/service/status.ts";
import { assessService } from "#jobs/health/conditions/processes.ts";
import { formatBytes } from "#lib/disk.ts";
import { readSqlState } from "#lib/errors.ts";
import { ago, many, showTime } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { escapeText, toLine, toPlainTexts } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { ReplicaState } from "#model/kinds.ts";
import { describeLearning } from "#model/rules.ts";
import { nameZone } from "#model/zones.ts";
import { cellOf, type DrawnHour } from "#proof/coverage/describe-coverage.ts";
import { GAP_EXIT_CODE } from "#proof/coverage/hours.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import { allowRemote, pickAsk } from "../operations/remote-commands.ts";
import { describePastOutage } from "../start/describe-failure.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { drawTable, pickPaint } from "../terminal/print.ts";

const UNDEFINED_TABLE = "42P01";

const HELP = `
The first table shows the processes of the service and when each was last alive; a process that is silent for a minute
counts as gone. Then each zone follows, with one character for each of the last 72 hours, oldest first: █ sealed,
▒ searched to its end, ░ open, · not yet, ! lost completely or in part, - already partly forgotten when the zone was first
watched.

Exit codes:
  0   nothing needs attention
  1   something needs attention, and the last lines name it: a role without a live process, a missing pseudonym key,
      entries held back until the key is present, a zone without a successful poll for five minutes, a zone with
      incomplete answers of the platform, a channel that does not deliver, dead notifications of the last 72 hours, an
      hour that expires within a day and is not sealed, an unresolved alert of Longwatch about itself; also if the
      database cannot be reached
  2   a mistake in the command line or the settings
  3   only lost hours need attention

Examples:
  npm run -s longwatch -- status
  npm run -s longwatch -- status --json`;

type Attention = NonNullable<StatusAnswer["attention"]>;

/** `longwatch status`: shows whether the service runs, the stored events and everything that needs attention. */
export function statusCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return allowRemote(storeCommand("status", HELP, io))
    .option("--json", "print the answer of GET /api/v1/status?detailed=true")
    .action(
      storeAction<{ json?: true }>(io, async (flags, read) => {
        read.finish();
        const config = readConfig();
        const status = await readStatus(config, io);
        const { attention } = status;
        if (attention === undefined) throw new Error("the answer lacks attention, which was asked for");
        if (flags.json === true) await writeJson(io.stdout, status);
        else {
          const plain = toPlainTexts(status);
          const isLocal = config.remote === null && config.databaseUrl === null;
          const outage = isLocal ? describePastOutage(config.dataDir, io.clock()) : [];
          const lines = outage.map((line) => `${escapeText(line)}\n`);
          await writeOut(
            io.stdout,
            [describe(plain, plain.attention ?? [], pickPaint(io)), ...lines].join(""),
          );
        }
        io.setExitCode(exitCodeOf(attention));
      }),
    );
}

function exitCodeOf(attention: Attention): number {
  if (attention.length === 0) return 0;
  return attention.every(({ kind }) => kind === "gap") ? GAP_EXIT_CODE : 1;
}

async function readStatus(config: Config, io: StoreIo): Promise<StatusAnswer> {
  try {
    return (await pickAsk(config, io, null)(showStatus, { detailed: "true" })) as StatusAnswer;
  } catch (thrown) {
    const isUntouched =
      readSqlState(thrown) === UNDEFINED_TABLE && (await withStore(config, ({ db }) => isNew(db)));
    if (isUntouched) return neverStarted(io.clock());
    throw thrown;
  }
}

/** Returns whether the service has never been started on the database. */
async function isNew(db: Queryable): Promise<boolean> {
  const { rows } = await db.execute<{ exists: boolean }>(
    "select to_regclass('coverage_windows') is not null as exists",
  );
  return rows[0]?.exists !== true;
}

function neverStarted(now: number): StatusAnswer {
  return {
    now: new Date(now).toISOString(),
    spikesOpen: 0,
    alertsFiring: 0,
    alertsAcknowledged: 0,
    notificationsPending: 0,
    hoursToLoss: null,
    zones: [],
    channels: [],
    archive: [],
    service: toServiceItem(assessService([])),
    attention: describeNeverStarted(),
  };
}

function describe(status: StatusAnswer, attention: Attention, paint: Paint): string {
  const { service, zones, now } = status;
  const nothing = zones.length === 0 ? [asCalled("No data is stored yet: run npm start.")] : [];
  return [
    ...(service === null ? [] : [describeService(service, paint)]),
    ...zones.flatMap((zone) => describeZone(zone, Date.parse(now), paint)),
    ...nothing,
    ...describeWork(status),
    ...describeArchive(status.archive),
    ...(status.storage == null ? [] : [describeStorage(status.storage)]),
    ...(status.erasedFiles ?? []).map((file) =>
      describeErasedFile({ ...file, until: Date.parse(file.until) }),
    ),
    ...describeAttention(attention, paint),
    "",
  ].join("\n");
}

function describeZone(
  { id, name, newestEventAt, quarantined, learningUntil, hours = [] }: StatusAnswer["zones"][number],
  now: number,
  paint: Paint,
): string[] {
  const age = newestEventAt === null ? "none yet" : `newest ${ago(now - Date.parse(newestEventAt))}`;
  const events = hours.reduce((sum, { stored }) => sum + stored, 0);
  const drawn = hours.map(({ startsAtMs, state }) => ({ startsAt: startsAtMs, status: state }));
  return [
    `${paint("bold", nameZone(id, name))}   ${many(events, "event")} in the last 72 hours, ${age}`,
    `  ${drawHours(now, drawn)}`,
    ...(learningUntil === null ? [] : [`  ${describeLearning(Date.parse(learningUntil))}`]),
    ...(quarantined > 0
      ? [
          `  ${many(quarantined, "unreadable entry", "unreadable entries")} in quarantine (quarantine list --zone ${id})`,
        ]
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

function describeAttention(attention: Attention, paint: Paint): string[] {
  if (attention.length === 0) return [];
  const lines = attention.map(({ text, command }) => {
    const more = command === null ? "" : asCalled(`: npm run -s longwatch -- ${command}`);
    return `  ${toLine(text, 300)}${more}`;
  });
  return [paint("bold", "Needs attention:"), ...lines];
}

/** How long an ended process is shown. The last process is always shown. */
const SHOWN_MS = 24 * 3_600_000;
const MAX_SHOWN = 50;

type Service = NonNullable<StatusAnswer["service"]>;

const STYLES: Readonly<Record<ReplicaState, Style>> = { alive: "green", stopped: "dim", silent: "red" };

/** One line that says whether the service runs, and a table of its processes. */
export function describeService(service: Service, paint: Paint): string {
  const { processes } = service;
  const shown = processes
    .filter(({ state, silentMs }, index) => index === 0 || state === "alive" || silentMs < SHOWN_MS)
    .slice(0, MAX_SHOWN);
  if (shown.length === 0) return paint("red", "Not running: no service has ever run on this database.");
  const head = ["PROCESS", "ROLES", "STATE", "LAST ALIVE", "SINCE (UTC)", "VERSION"];
  const table = drawTable(head, shown.map(toRow), paint);
  return `${describeLife(service, paint)}\n${table.trimEnd()}`;
}

function describeLife({ processes, roles, missingRoles }: Service, paint: Paint): string {
  const [last] = processes;
  const age = last === undefined ? "" : `${ago(last.silentMs)}, ${showTime(last.lastAliveAt)} UTC`;
  if (missingRoles.length === 0) return `${paint("green", "Running")}: last alive ${age}`;
  if (roles.every(({ alive }) => alive === 0)) return `${paint("red", "Not running")}: last alive ${age}`;
  const missing = roles
    .filter(({ role }) => missingRoles.includes(role))
    .map(
      ({ role, silentMs }) =>
        `${role} (${silentMs === null ? "never alive" : `last alive ${ago(silentMs)}`})`,
    );
  return `${paint("red", "Running in part")}: no live process has ${missing.join(", ")}`;
}

function toRow({ host, pid, roles, state, silentMs, startedAt, version }: Service["processes"][number]) {
  return [
    `${toLine(host, 60)} ${pid}`,
    roles.map((role) => toLine(role, 20)).join(", "),
    { text: state, style: STYLES[state] },
    ago(silentMs),
    showTime(startedAt),
    toLine(version, 30),
  ];
}

/** Returns one character per hour that the platform still has, oldest first, as in `longwatch coverage`. */
export function drawHours(now: number, hours: readonly DrawnHour[]): string {
  const known = new Map(hours.map(({ startsAt, status }) => [startsAt, status]));
  let strip = "";
  for (let hour = startOfHour(horizonAt(now)); hour <= now; hour += HOUR_MS)
    strip += cellOf(known.get(hour) ?? "not yet");
  return strip;
}
