import { z } from "zod";
import { ArchivedZone, toArchivedZone } from "#archive/operations/archive-status.ts";
import { readZoneArchives } from "#db/archive/archived-days.ts";
import { readChannelStatuses } from "#db/delivery/channel-states.ts";
import { type OpenWork, readOpenWork } from "#db/health/service-status.ts";
import { listRemaining } from "#db/people/erasures.ts";
import { readReplicas } from "#db/postgres/leases.ts";
import { describeCircuit } from "#delivery/rules/plan-delivery.ts";
import { assessService, type ServiceLife } from "#jobs/health/conditions/processes.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { REPLICA_STATES } from "#model/kinds.ts";
import { IsoTime, Name, Text, toIso, toIsoOrNull } from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";
import { readZones } from "#proof/coverage/read-zones.ts";
import { readAttention } from "./attention.ts";
import { HourItem, toHourItem } from "./overview.ts";
import { readStorage, Storage } from "./settings.ts";
import { describeZones, readVisibleZones, Zone } from "./zones.ts";

const MAX_ZONES = 500;

const Channel = z
  .object({
    name: Name,
    circuit: Name.describe("One of closed, open, half-open, disabled."),
    waiting: z.number().int(),
    dead: z.number().int(),
    lastError: Text.nullable(),
  })
  .meta({ id: "Channel" });

const Process = z
  .object({
    host: Name,
    pid: z.number().int(),
    version: Name,
    roles: z.array(Name),
    state: z
      .enum(REPLICA_STATES)
      .describe(
        "stopped: the process was stopped on purpose. silent: the process has shown no sign of life for a minute and may have been killed.",
      ),
    startedAt: IsoTime,
    lastAliveAt: IsoTime,
    silentMs: z.number().describe("Time since then, by the clock of the database."),
  })
  .meta({ id: "Process" });

const Service = z
  .object({
    missingRoles: z
      .array(Name)
      .describe("Roles that no live process has. An empty list means that everything runs."),
    roles: z.array(
      z.object({
        role: Name,
        alive: z.number().int().describe("Number of live processes with this role."),
        lastAliveAt: IsoTime.nullable().describe("Null if no process ever had this role."),
        silentMs: z.number().nullable().describe("Time since then, by the clock of the database."),
      }),
    ),
    processes: z
      .array(Process)
      .describe("Processes of the last seven days. The process that was alive last comes first."),
  })
  .meta({ id: "Service" });

const Answer = z.object({
  now: IsoTime,
  spikesOpen: z.number().int(),
  alertsFiring: z.number().int(),
  alertsAcknowledged: z.number().int(),
  notificationsPending: z.number().int(),
  hoursToLoss: z.number().nullable().describe("The smallest value of all zones."),
  zones: z
    .array(
      Zone.extend({
        hours: z.array(HourItem).optional().describe("The last 72 hours, oldest first. Only with detailed."),
      }),
    )
    .describe(`The first ${MAX_ZONES} zones. GET /api/v1/zones lists all of them.`),
  channels: z
    .array(Channel)
    .nullable()
    .describe("Null if the key is for some zones only, because channels serve all zones."),
  archive: z
    .array(ArchivedZone)
    .describe("The zones that have days in the archive. GET /api/v1/archive/days lists the files."),
  storage: Storage.nullable()
    .optional()
    .describe("Null if the key is for some zones only. Only with detailed."),
  erasedFiles: z
    .array(
      z.object({
        path: Name,
        events: z.number().int().nullable().describe("Null if the file could not be read."),
        until: IsoTime.describe("When the service will have deleted the file, if the service runs."),
        problem: Text.nullable().describe("Null: only caches of other processes may have the file."),
      }),
    )
    .optional()
    .describe(
      "Files of the archive that still hold erased events. Empty if the key is for some zones only. Only with detailed.",
    ),
  service: Service.nullable().describe(
    "Which processes of the service are alive. Null if the key is for some zones only.",
  ),
  attention: z
    .array(
      z.object({
        kind: Name.describe("The name of the condition."),
        zoneId: z.number().int().nullable(),
        text: Text,
        command: Name.nullable().describe("The command that shows more, without the program's name."),
      }),
    )
    .optional()
    .describe("What a person should look at, the most urgent first. Only with detailed."),
});
export type StatusAnswer = z.infer<typeof Answer>;

/** The command line's `status` has exit codes and a text of its own. */
export const showStatus = defineQuery({
  name: "status.show",
  summary: "Show the status of the service",
  http: ["GET", "/api/v1/status"],
  tag: "Service",
  scope: "read",
  input: z.strictObject({
    detailed: z
      .enum(["true", "false"])
      .default("false")
      .describe("true: also what needs attention, and the state of each zone's last 72 hours."),
  }),
  output: Answer,
  run: readStatus,
});

async function readStatus(
  asked: QueryContext,
  { detailed }: { detailed: "true" | "false" },
): Promise<StatusAnswer> {
  const { db, now, caller, zones: readNames } = asked;
  const { zoneIds } = caller;
  const seen = (await readVisibleZones(db, zoneIds)).slice(0, MAX_ZONES);
  // Facts of no single zone, such as alerts about Longwatch itself, are for keys of every zone.
  const isWhole = zoneIds === null;
  const [zones, ofNoZone, channels, archives, replicas, remaining, details, storage] = await Promise.all([
    describeZones(db, seen, { now, names: readNames() }),
    isWhole ? readOpenWork(db, [null]) : [],
    isWhole ? readChannels(db) : null,
    readZoneArchives(db, zoneIds),
    isWhole ? readReplicas(db) : null,
    isWhole ? listRemaining(db, now) : [],
    detailed === "true" ? readDetails(asked, seen) : null,
    isWhole && detailed === "true" ? readStorage(asked) : null,
  ]);
  const work = [...zones, ...ofNoZone];
  const sum = (count: (one: Omit<OpenWork, "zoneId">) => number) =>
    work.reduce((total, one) => total + count(one), 0);
  const losses = zones.flatMap(({ hoursToLoss }) => hoursToLoss ?? []);
  return {
    now: toIso(now),
    spikesOpen: sum((zone) => zone.spikesOpen),
    alertsFiring: sum((zone) => zone.alertsFiring),
    alertsAcknowledged: sum((zone) => zone.alertsAcknowledged),
    notificationsPending: sum((zone) => zone.notificationsPending),
    hoursToLoss: losses.length === 0 ? null : Math.min(...losses),
    zones: zones.map((zone) => ({
      ...zone,
      ...(details === null ? {} : { hours: details.hoursOf(zone.id) }),
    })),
    channels,
    archive: archives.map(toArchivedZone),
    ...(details === null
      ? {}
      : { storage, erasedFiles: remaining.map(({ until, ...file }) => ({ ...file, until: toIso(until) })) }),
    service: replicas === null ? null : toServiceItem(assessService(replicas)),
    ...(details === null ? {} : { attention: details.attention }),
  };
}

/** Returns every channel that was ever sent a message, by name. */
async function readChannels(db: QueryContext["db"]): Promise<z.infer<typeof Channel>[]> {
  const statuses = await readChannelStatuses(db);
  return statuses.map(({ channel, nowMs, waiting, dead, lastError, ...circuit }) => ({
    name: channel,
    circuit: describeCircuit({ ...circuit, lastError }, nowMs),
    waiting,
    dead,
    lastError,
  }));
}

/** Reads one zone after another, because one request may be about hundreds of zones and must leave connections for others. */
async function readDetails(asked: QueryContext, seen: readonly { readonly zoneId: number }[]) {
  const { db, now } = asked;
  const span = { from: startOfHour(horizonAt(now)), to: now + HOUR_MS, hasEvidence: false };
  const hours = new Map<number, z.infer<typeof HourItem>[]>();
  for (const { zoneId } of seen)
    for (const zone of await readZones(db, now, { zoneId, ...span }))
      hours.set(zoneId, zone.hours.map(toHourItem));
  return {
    attention: await readAttention(asked, seen),
    hoursOf: (zoneId: number) => hours.get(zoneId) ?? [],
  };
}

export function toServiceItem({ missingRoles, roles, replicas }: ServiceLife): z.infer<typeof Service> {
  return {
    missingRoles: [...missingRoles],
    roles: roles.map(({ lastAliveAt, ...role }) => ({ ...role, lastAliveAt: toIsoOrNull(lastAliveAt) })),
    processes: replicas.map(({ roles: own, startedAt, lastAliveAt, ...replica }) => ({
      ...replica,
      roles: [...own],
      startedAt: toIso(startedAt),
      lastAliveAt: toIso(lastAliveAt),
    })),
  };
}
