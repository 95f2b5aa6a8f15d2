import { z } from "zod";
import type { Database } from "../db/client.ts";
import { readUnfinishedWork } from "../db/queries/unfinished-work.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";

export interface SweepDeps {
  readonly database: Database;
  readonly ring: (
    job: "roll-up-trends" | "fetch-advice" | "raise-alerts" | "deliver-alerts",
  ) => Promise<unknown>;
}

/**
 * Rings for whatever lies in the tables and may have lost its nudge: a flushed queue, a killed worker, a retry whose
 * time has come. Rings too often rather than too rarely; every job it rings finds nothing to do when nothing is.
 */
export function createSweepJob({ database, ring }: SweepDeps): AnyJob {
  return defineJob({
    name: "sweep",
    queue: "alerts",
    payload: z.object({}),
    attempts: 1,
    timeoutMs: 20_000,
    async run() {
      const work = await readUnfinishedWork(database.db);
      if (work.staleMinutes) await ring("roll-up-trends");
      if (work.openSpikes) await Promise.all([ring("fetch-advice"), ring("raise-alerts")]);
      if (work.dueNotifications) await ring("deliver-alerts");
    },
  });
}
