import { z } from "zod";
import type { Database } from "../../db/client.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { buildCubeDay, listStaleCubeDays } from "../../db/search/search-cubes.ts";
import type { Log } from "../../src/lib/log.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";

const DAYS_PER_LOOK = 50;

export interface BuildCubesDeps {
  readonly database: Database;
  readonly log: Log;
}

/**
 * Counts closed days in advance for grouped searches, and recounts days that have changed since. The counts are a
 * function of the events. A run that is killed within a day has changed nothing, and a day that another run holds is
 * skipped. A day that changes while it is counted stays out of date until the next run. Until then searches count its
 * events.
 */
export function createBuildCubesJob({ database, log }: BuildCubesDeps): AnyJob {
  return defineJob({
    name: "build-cubes",
    queue: "derive",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 1_800_000,
    async run(_payload, signal) {
      let counted = 0;
      for (;;) {
        const days = await listStaleCubeDays(database.db, DAYS_PER_LOOK);
        let built = 0;
        for (const day of days) {
          if (signal.aborted) return;
          if (await inTransaction(database, ({ tx }) => buildCubeDay(tx, day))) built++;
        }
        counted += built;
        if (built === 0 || days.length < DAYS_PER_LOOK) break;
      }
      if (counted > 0) log.debug({ days: counted }, "closed days counted");
    },
  });
}
