import { z } from "zod";
import { removePassed } from "#db/delivery/forwarding/forward-cursors.ts";
import { deleteExpired } from "#db/people/retention.ts";
import { forgetSessions } from "#db/people/sessions.ts";
import { forgetReplicas } from "#db/postgres/leases.ts";
import { dropPartitionsBefore, ensurePartitions } from "#db/postgres/partitions.ts";
import { minutesFrom } from "#detection/rules/detection-settings.ts";
import { DAY_MS } from "#lib/units.ts";
import { StorageError } from "#model/archive-storage.ts";
import { toDay } from "#model/horizon.ts";
import { keptFrom, type Retention } from "#people/rules/retention.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { ArchiveStore } from "../archive/archive-store.ts";
import { cleanArchive } from "../archive/clean-archive.ts";
import type { JobContext } from "../context.ts";

/**
 * The platform's three days. The days ahead are enough for a day's first event to find its partition even after a
 * long outage.
 */
const DAYS_BACK = 3;
const DAYS_AHEAD = 3;
/** How long the status names a process that has ended. */
const REPLICAS_KEPT_MS = 7 * DAY_MS;
/** How long an unused session and a link that signs in stay in their tables. */
const SESSIONS_KEPT_MS = 30 * DAY_MS;

export interface ManagePartitionsDeps extends Pick<JobContext, "database" | "clock" | "log"> {
  readonly retention: Retention;
  /** Null or left out: there is no archive. */
  readonly archive?: ArchiveStore | null;
  /** How long Postgres keeps a day that is in the archive. Null or left out: as long as the events. */
  readonly hotDays?: number | null;
}

/**
 * Creates the partitions of coming days and drops those past retention. Events and records are dropped by whole
 * partitions; tables without partitions are deleted from in small batches. Archive days are dropped earlier, and the
 * archive's files are deleted like their events. Several replicas may run this at once.
 */
export function createManagePartitionsJob(deps: ManagePartitionsDeps): AnyJob {
  const { database, clock, log, retention, archive = null, hotDays = null } = deps;
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
      const keptSince = (keptDays: number) => toDay(keptFrom(now, keptDays));
      const dropped = [
        ...(await dropPartitionsBefore(database, "waf_events", keptSince(retention.eventDays))),
        ...(await dropPartitionsBefore(database, "raw_blocks", keptSince(retention.rawDays))),
      ];
      await deleteExpired(
        database.db,
        {
          rawFrom: keptFrom(now, retention.rawDays),
          eventsFrom: keptFrom(now, retention.eventDays),
          rollUpsFrom: keptFrom(now, retention.rollUpDays),
          minutesFrom: minutesFrom(now),
          addressesFrom: keptFrom(now, retention.ipDays),
        },
        now,
      );
      if (archive !== null)
        await cleanArchive({ database, log, retention, archive, hotDays }, now).catch((thrown: unknown) => {
          if (!(thrown instanceof StorageError)) throw thrown;
          log.error({ err: thrown }, "archive not cleaned");
        });
      await removePassed(database.db, now);
      await forgetReplicas(database.db, REPLICAS_KEPT_MS);
      await forgetSessions(database.db, SESSIONS_KEPT_MS);
      if (created.length + dropped.length > 0) log.debug({ created, dropped }, "partitions managed");
    },
  });
}
