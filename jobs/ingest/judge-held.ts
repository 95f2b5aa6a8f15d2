import { z } from "zod";
import { readHeldCounts, releaseHeldEntries } from "#db/ingest/held-entries.ts";
import { readQuarantined } from "#db/ingest/quarantine.ts";
import { WAITS_FOR_KEY } from "#db/ingest/raw-blocks.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import type { Log } from "#lib/log.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { storeAgain } from "./retry-quarantined.ts";

const LEASE = { name: "judge-held", ttlMs: 15_000 };

export interface JudgeHeldDeps
  extends Pick<JobContext, "database" | "partitions" | "clock" | "erasures" | "afterPage"> {
  readonly log: Pick<Log, "info">;
}

/**
 * Judges the entries that were held while the pseudonym key was missing, and stores their events. Does nothing while the key
 * is still missing. After a kill the next job continues. If two jobs run at once, only one works.
 */
export function createJudgeHeldJob(deps: JudgeHeldDeps): AnyJob {
  return defineJob({
    name: "judge-held",
    queue: "ingest",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 600_000,
    run: (_, signal) => judgeHeld(deps, signal),
  });
}

export async function judgeHeld(deps: JudgeHeldDeps, signal: AbortSignal) {
  const { database, erasures, log, afterPage } = deps;
  const held = await readHeldCounts(database.db);
  if (held.length === 0) return "no event is held";
  if ((await erasures.judge([])) === null) return "the pseudonym key is missing";
  const done = await holdLease(database, LEASE, async (lease) => {
    const until = AbortSignal.any([signal, lease.lost]);
    for (const { zoneId, entries } of held) {
      while (!until.aborted) {
        const rows = await readQuarantined(database.db, { zoneId, onlyHeld: true });
        if (rows.length === 0) break;
        // The other entries are in the quarantine for another reason, and stay there.
        const { waiting = [], others = [] } = Object.groupBy(rows, ({ reason }) =>
          reason === WAITS_FOR_KEY ? "waiting" : "others",
        );
        const failed = await storeAgain(deps, { zoneId, lease, note: async () => undefined }, waiting);
        await releaseHeldEntries(database, { zoneId, lease, guard: erasures }, [...others, ...failed]);
        afterPage();
      }
      if (until.aborted) return;
      log.info({ zoneId, entries }, "held entries judged");
    }
  });
  return done === null ? LEASE_TAKEN : undefined;
}
