import { z } from "zod";
import type { Database } from "../../db/client.ts";
import { closeDay, hasTrigrams, listDaysToClose } from "../../db/search/closed-days.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { DAY_MS } from "../../src/lib/units.ts";
import { toDay } from "../../src/model/horizon.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";

/** The platform shows an event for 72 hours, so a day that ended so long ago gains no more events. */
const DAYS_UNTIL_CLOSED = 3;
/**
 * A day with all its hours decided is closed this long after its end, which leaves time for events that arrived too
 * late for their hour.
 */
const REST_MS = 3_600_000;

export interface CloseDaysDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** Called after each day that was closed, because it can be counted now. */
  readonly afterClosing?: () => unknown;
}

/**
 * Closes each day that gains no more events: creates the indexes by address, JA4 and text, which would be too
 * expensive during ingest, and a trigger that records late changes. A killed run leaves days half done, and the next
 * run finishes them. Of two concurrent runs only one works.
 */
export function createCloseDaysJob({ database, clock, log, afterClosing }: CloseDaysDeps): AnyJob {
  return defineJob({
    name: "close-days",
    queue: "derive",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 3_000_000,
    async run(_payload, signal) {
      const now = clock();
      const trigrams = await hasTrigrams(database);
      if (!trigrams)
        log.warn(
          { effect: "a search for part of a text reads every event of its window" },
          "extension pg_trgm not available",
        );
      const days = await listDaysToClose(database.db, {
        before: toDay(now - DAYS_UNTIL_CLOSED * DAY_MS),
        sealedBefore: toDay(now - REST_MS),
        hasTrigrams: trigrams,
      });
      for (const day of days) {
        if (signal.aborted) return;
        if (!(await closeDay(database, day, { hasTrigrams: trigrams }))) return;
        log.info({ day: day.day }, "day closed");
        await afterClosing?.();
      }
    },
  });
}
