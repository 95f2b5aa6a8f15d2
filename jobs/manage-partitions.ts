import { z } from "zod";
import type { Database } from "../db/client.ts";
import { dropPartitionsBefore, ensurePartitions } from "../db/partitions.ts";
import { deleteCubesBefore } from "../db/queries/search-cubes.ts";
import type { Clock } from "../src/clock.ts";
import { DAY_MS, toDay } from "../src/coverage/horizon.ts";
import type { Log } from "../src/log.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";

/** The platform's three days, and enough ahead that a day's first event finds its partition after a long outage too. */
const DAYS_BACK = 3;
const DAYS_AHEAD = 3;

export interface ManagePartitionsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly retentionDays: number;
}

/** Creates the days to come and drops those past retention, whole partitions at a time. Safe beside itself. */
export function createManagePartitionsJob({
  database,
  clock,
  log,
  retentionDays,
}: ManagePartitionsDeps): AnyJob {
  return defineJob({
    name: "manage-partitions",
    queue: "derive",
    payload: z.object({}),
    attempts: 5,
    timeoutMs: 300_000,
    async run() {
      const now = clock();
      const days = Array.from({ length: DAYS_BACK + 1 + DAYS_AHEAD }, (_, index) =>
        toDay(now + (index - DAYS_BACK) * DAY_MS),
      );
      const created = await ensurePartitions(database, days);
      const firstKept = toDay(now - retentionDays * DAY_MS);
      const dropped = [
        ...(await dropPartitionsBefore(database, "waf_events", firstKept)),
        ...(await dropPartitionsBefore(database, "raw_blocks", firstKept)),
      ];
      await deleteCubesBefore(database.db, firstKept);
      if (created.length + dropped.length > 0) log.info({ created, dropped }, "partitions managed");
    },
  });
}
