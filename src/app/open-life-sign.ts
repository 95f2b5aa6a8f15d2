import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Config } from "#config/config.ts";
import { beatReplica, endReplica } from "#db/postgres/leases.ts";
import type { JobContext } from "#jobs/context.ts";
import { toError } from "#lib/errors.ts";
import type { StopStack } from "#lib/process.ts";
import type { TickName, TickReport } from "#model/schedule.ts";
import { LIFE_SIGN_EVERY_MS } from "#operations/service-life.ts";

export interface LifeSignParts extends Pick<JobContext, "database" | "log" | "zoneIds"> {
  readonly config: Pick<Config, "roles">;
  readonly version: string;
  /** Returns this process's report on its ticks. */
  readonly ticks: () => Partial<Record<TickName, TickReport>>;
  /** Default 15 s. */
  readonly everyMs?: number;
}

/**
 * Writes this process's row in `replicas` now, every few seconds and at the stop. A failed write stops nothing, because
 * the next write contains the same facts.
 */
export async function openLifeSign(parts: LifeSignParts, stack: StopStack): Promise<void> {
  const { config, database, log, zoneIds, version, ticks, everyMs = LIFE_SIGN_EVERY_MS } = parts;
  const replica = {
    id: randomUUID(),
    host: hostname(),
    pid: process.pid,
    version,
    roles: [...config.roles],
    zoneIds: [...zoneIds],
  };
  let beating: Promise<void> | null = null;
  let isFailing = false;
  const write = async () => {
    try {
      await beatReplica(database.db, { ...replica, ticks: ticks() });
      isFailing = false;
    } catch (thrown) {
      // Reported once per lasting failure: the status then shows that this process does not run.
      if (!isFailing) log.warn({ err: toError(thrown) }, "sign of life not written");
      isFailing = true;
    }
  };
  const beat = () => {
    // One write at a time, so that writes do not pile up if the database is slow.
    beating ??= write().finally(() => {
      beating = null;
    });
    return beating;
  };
  const timer = setInterval(() => void beat(), everyMs);
  stack.defer("life sign", async () => {
    clearInterval(timer);
    await beating;
    await endReplica(database.db, replica.id);
  });
  await beat();
}
