import { restoreDay } from "#archive/operations/restore-day.ts";
import type { Database } from "#db/client.ts";
import { createArchiveDaysJob } from "#jobs/archive/archive-days.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import { addFacts, rewriteDay } from "#jobs/archive/rewrite-day.ts";
import { silent } from "../../ingest/ingest-jobs.ts";
import { DAY, DAY_START, NOW } from "./tested-day.ts";

/** What a process does with archive days: archives all days, or rewrites, adds facts to, or restores DAY of a zone. */
export type ArchiveWork = "archive" | "rewrite" | "facts" | "restore";

interface ArchiveWorkDeps {
  readonly database: Database;
  readonly archive: ArchiveStore;
  readonly onStep?: (step: string) => void;
}

export async function doArchiveWork(
  { database, archive, onStep = () => undefined }: ArchiveWorkDeps,
  work: ArchiveWork,
  zoneId: number,
): Promise<void> {
  const zoneDay = { zoneId, day: DAY };
  if (work === "archive") {
    const job = createArchiveDaysJob({
      database,
      archive,
      clock: () => NOW,
      zoneIds: null,
      log: silent,
      onStep,
    });
    await job.run({} as never, new AbortController().signal);
  } else if (work === "rewrite") {
    const change = { replace: () => "erased", untilAt: DAY_START + 86_400_000, isErasure: true };
    await rewriteDay({ database, archive, onStep }, zoneDay, change);
  } else if (work === "facts") await addFacts({ database, archive, onStep }, zoneDay);
  else await restoreDay({ database, archive, onStep }, zoneDay, () => undefined);
}
