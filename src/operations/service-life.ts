/** The running service: its signs of life, its settings and its jobs. */

import type { Config, Setting } from "#config/config.ts";
import type { Alerting } from "#config/file/config-file.ts";
import type { RequestBudget } from "#db/ingest/request-budgets.ts";
import type { SeenReplica } from "#db/postgres/leases.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import type { DiskSpace } from "#lib/disk.ts";
import { type ReplicaState, WORKER_ROLES } from "#model/kinds.ts";
import type { Retention } from "#people/rules/retention.ts";

/** How often a process writes that it is alive. */
export const LIFE_SIGN_EVERY_MS = 15_000;
/** A process that is silent for longer is not alive: it has missed four writes. */
const SILENT_AFTER_MS = 60_000;

/** One process of the service. Times in epoch ms. */
interface ReplicaLife {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly roles: readonly string[];
  readonly state: ReplicaState;
  readonly startedAt: number;
  readonly lastAliveAt: number;
  /** Since `lastAliveAt`, by Postgres's clock. */
  readonly silentMs: number;
}

interface RoleLife {
  readonly role: string;
  /** Processes with this role that are alive. */
  readonly alive: number;
  /** Null if no process ever had the role. */
  readonly lastAliveAt: number | null;
  readonly silentMs: number | null;
}

export interface ServiceLife {
  /** The process that was alive last comes first. */
  readonly replicas: readonly ReplicaLife[];
  readonly roles: readonly RoleLife[];
  /** Roles that need a process and have none that is alive. */
  readonly missingRoles: readonly string[];
}

/**
 * Returns which processes of the service are alive. The role http is optional: it counts as missing only if its last
 * process fell silent without a stop.
 */
export function assessService(rows: readonly SeenReplica[]): ServiceLife {
  const replicas = rows.map(toLife);
  const others = replicas.flatMap(({ roles }) => roles);
  const names = [...new Set([...WORKER_ROLES, ...others])];
  const roles = names.map((role) => lifeOf(role, replicas));
  const isMissing = ({ role, alive }: RoleLife) => {
    if (alive > 0) return false;
    const isNeeded = WORKER_ROLES.some((needed) => needed === role);
    return isNeeded || replicas.find((replica) => replica.roles.includes(role))?.state === "silent";
  };
  return { replicas, roles, missingRoles: roles.filter(isMissing).map(({ role }) => role) };
}

function toLife({
  host,
  pid,
  version,
  roles,
  startedAt,
  seenAt,
  stoppedAt,
  silentMs,
}: SeenReplica): ReplicaLife {
  const state = stoppedAt !== null ? "stopped" : silentMs > SILENT_AFTER_MS ? "silent" : "alive";
  return { host, pid, version, roles, state, startedAt, lastAliveAt: seenAt, silentMs };
}

function lifeOf(role: string, replicas: readonly ReplicaLife[]): RoleLife {
  const own = replicas.filter(({ roles }) => roles.includes(role));
  const alive = own.filter(({ state }) => state === "alive").length;
  return { role, alive, lastAliveAt: own[0]?.lastAliveAt ?? null, silentMs: own[0]?.silentMs ?? null };
}

/** Attempts of a job in this process since its start. */
export interface JobRuns {
  readonly job: string;
  /** Runs by outcome: done, retry, give-up, wait. */
  readonly runs: Readonly<Record<string, number>>;
  readonly meanSeconds: number | null;
  /** Epoch ms. */
  readonly lastSuccessAt: number | null;
}

/** The running service as the operations pages show it. Channels are listed by name and kind; the rest of one is secret. */
export interface ServiceView {
  /** Returns the settings of the configuration file that hold now. */
  readonly alerting: () => Alerting;
  /** Returns the names of the channels that hold now; null if this process does not know those of the service. */
  readonly configuredChannels: () => ReadonlySet<string> | null;
  /** The configured zones. */
  readonly zoneIds: readonly number[];
  /** The opened channels of this process. */
  readonly notifiers: ReadonlyMap<string, Notifier>;
  readonly settings: readonly Setting[];
  readonly archive: Pick<Config["archive"], "folder" | "isWritten" | "hotDays"> & {
    /** The bucket's address, null if there is none. */
    readonly bucket: string | null;
  };
  readonly retention: Retention;
  /** Returns the disk space of the embedded Postgres; null for another server. */
  readonly readDisk: () => DiskSpace | null;
  readonly requestBudget: RequestBudget;
  readonly pollEveryMs: number;
  readonly readJobRuns: () => Promise<readonly JobRuns[]>;
}
