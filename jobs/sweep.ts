import { z } from "zod";
import type { Database } from "../db/client.ts";
import { listRepairableZones } from "../db/queries/differing-cells.ts";
import { readUnfinishedWork } from "../db/queries/unfinished-work.ts";
import type { Clock } from "../src/clock.ts";
import { horizonAt } from "../src/coverage/horizon.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";

export interface SweepDeps {
  readonly database: Database;
  readonly ring: (
    job: "repair-window" | "roll-up-trends" | "fetch-advice" | "raise-alerts" | "deliver-alerts",
    payload?: Record<string, unknown>,
  ) => Promise<unknown>;
  readonly clock: Clock;
}

/**
 * Rings for whatever lies in the tables and may have lost its nudge: a flushed queue, a killed worker, a retry whose
 * time has come. Rings too often rather than too rarely; every job it rings finds nothing to do when nothing is.
 */
export function createSweepJob({ database, ring, clock }: SweepDeps): AnyJob {
  return defineJob({
    name: "sweep",
    queue: "alerts",
    payload: z.object({}),
    attempts: 1,
    timeoutMs: 20_000,
    async run() {
      const work = await readUnfinishedWork(database.db);
      const nowMs = clock();
      const repairable = await listRepairableZones(database.db, { nowMs, horizonMs: horizonAt(nowMs) });
      const rung = [
        ...(work.staleMinutes ? ["roll-up-trends" as const] : []),
        ...(work.untoldSpikes ? (["fetch-advice", "raise-alerts"] as const) : []),
        ...(work.dueNotifications ? ["deliver-alerts" as const] : []),
      ].map((job) => ring(job));
      rung.push(...repairable.map((zoneId) => ring("repair-window", { zoneId })));
      // One bell that is out of order keeps no other from being rung.
      for (const one of await Promise.allSettled(rung)) if (one.status === "rejected") throw one.reason;
    },
  });
}
