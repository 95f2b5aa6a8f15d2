/** The processes of the service that are alive, and the condition that a role has none. */
import { readReplicas, type SeenReplica } from "#db/postgres/leases.ts";
import { type ReplicaState, WORKER_ROLES } from "#model/kinds.ts";
import { defineCondition, type Found } from "./condition.ts";

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

/** Null if every role that is needed has a live process. */
export function findMissing(
  { missingRoles }: Pick<ServiceLife, "missingRoles">,
  nowMs: number,
): Found | null {
  if (missingRoles.length === 0) return null;
  const roles = `${missingRoles.length === 1 ? "role" : "roles"} ${missingRoles.join(", ")}`;
  return {
    since: nowMs,
    headline: `No live process has the ${roles}`,
    next: { text: "Start it: run npm start.", command: null },
    // Nothing that runs could raise the alert.
    graceMs: Number.POSITIVE_INFINITY,
  };
}

export const notRunning = defineCondition<Pick<ServiceLife, "missingRoles">>({
  name: "not-running",
  of: "service",
  severity: "critical",
  isShownEarly: true,
  read: async ({ db }) => [assessService(await readReplicas(db))],
  find: (service, { nowMs }) => findMissing(service, nowMs),
  recovered: () => "Every role has a live process again",
});
