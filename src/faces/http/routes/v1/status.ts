import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { readZoneArchives } from "#db/archive/archive-report.ts";
import { type OpenWork, readOpenWork } from "#db/service/open-work.ts";
import { readReplicas } from "#db/service/replicas.ts";
import { REPLICA_STATES } from "#model/kinds.ts";
import type { Zones } from "#model/zones.ts";
import { IsoTime, known, toIso, toIsoOrNull } from "#operations/fields.ts";
import { readChannels } from "#operations/read-channels.ts";
import { describeZones, readVisibleZones, Zone } from "#operations/service/zones.ts";
import { assessService, type ServiceLife } from "#operations/service-life.ts";
import { maskNullable } from "#stages/archive/mask/mask-text.ts";
import type { ApiDeps } from "./api-deps.ts";

const MAX_ZONES = 500;

const Channel = z
  .object({
    name: z.string(),
    circuit: z.string().describe("One of closed, open, half-open, disabled."),
    waiting: z.number().int(),
    dead: z.number().int(),
    lastError: z.string().nullable(),
  })
  .meta({ id: "Channel" });

const Process = z
  .object({
    host: z.string(),
    pid: z.number().int(),
    version: z.string(),
    roles: z.array(z.string()),
    state: z
      .enum(REPLICA_STATES)
      .describe(
        "stopped: the process was stopped on purpose. silent: the process has shown no sign of life for a minute and may have been killed.",
      ),
    startedAt: IsoTime,
    lastAliveAt: IsoTime,
  })
  .meta({ id: "Process" });

const Service = z
  .object({
    missingRoles: z
      .array(z.string())
      .describe("Roles that no live process has. An empty list means that everything runs."),
    roles: z.array(
      z.object({
        role: z.string(),
        alive: z.number().int().describe("Number of live processes with this role."),
        lastAliveAt: IsoTime.nullable().describe("Null if no process ever had this role."),
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
  zones: z.array(Zone).describe(`The first ${MAX_ZONES} zones. GET /api/v1/zones lists all of them.`),
  channels: z
    .array(Channel)
    .nullable()
    .describe("Null if the key is for some zones only, because channels serve all zones."),
  archive: z
    .array(
      z.object({
        zoneId: z.number().int(),
        days: z.number().int(),
        firstDay: z.string(),
        lastDay: z.string(),
        events: z.number(),
        eventBytes: z.number(),
        recordBytes: z.number(),
        checkedAt: IsoTime.describe("The last check of the file that was checked longest ago."),
        damagedFiles: z.number().int(),
      }),
    )
    .describe("The zones that have days in the archive. GET /api/v1/archive/days lists the files."),
  service: Service.nullable().describe(
    "Which processes of the service are alive. Null if the key is for some zones only.",
  ),
});
export type StatusAnswer = z.infer<typeof Answer>;

/** `GET /api/v1/status`: the current state of the zones that the caller may see. */
export function addStatus(app: FastifyInstance, { archive, clock, zones: readNames }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/status",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Service"],
        summary: "Show the status of the service",
        querystring: z.strictObject({}),
        response: { 200: Answer },
      },
    },
    async ({ caller }) => {
      const { zoneIds, masked } = known(caller);
      const status = await readStatus(archive, zoneIds, { now: clock(), names: readNames() });
      // A failure can quote the receiver.
      const channels = status.channels?.map((one) => ({ ...one, lastError: maskNullable(one.lastError) }));
      return masked ? { ...status, channels: channels ?? null } : status;
    },
  );
}

/** Returns the status of these zones; null means every zone. */
export async function readStatus(
  archive: ApiDeps["archive"],
  zoneIds: readonly number[] | null,
  { now, names }: { readonly now: number; readonly names: Zones },
): Promise<StatusAnswer> {
  const seen = (await readVisibleZones(archive, zoneIds)).slice(0, MAX_ZONES);
  // Facts of no single zone, such as alerts about Longwatch itself, are for keys of every zone.
  const isWhole = zoneIds === null;
  const [zones, ofNoZone, channels, archives, replicas] = await Promise.all([
    describeZones(archive, seen, { now, names }),
    isWhole ? readOpenWork(archive, [null]) : [],
    isWhole ? readChannels(archive) : null,
    readZoneArchives(archive, zoneIds),
    isWhole ? readReplicas(archive) : null,
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
    zones,
    channels,
    archive: archives.map((zone) => ({
      ...zone,
      checkedAt: toIso(zone.checkedAt),
    })),
    service: replicas === null ? null : toServiceItem(assessService(replicas)),
  };
}

export function toServiceItem({ missingRoles, roles, replicas }: ServiceLife): z.infer<typeof Service> {
  return {
    missingRoles: [...missingRoles],
    roles: roles.map(({ role, alive, lastAliveAt }) => ({
      role,
      alive,
      lastAliveAt: toIsoOrNull(lastAliveAt),
    })),
    processes: replicas.map(({ host, pid, version, state, ...replica }) => ({
      host,
      pid,
      version,
      roles: [...replica.roles],
      state,
      startedAt: toIso(replica.startedAt),
      lastAliveAt: toIso(replica.lastAliveAt),
    })),
  };
}
