import { advanceBackfill } from "#db/ingest/backfills.ts";
import { readListPass } from "#db/ingest/list-passes.ts";
import { walkDay, walkLeaseName } from "#jobs/ingest/walk-day.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import type { BackfillDeps, Expired, RunningBackfill } from "./backfill-deps.ts";
import { BackfillError } from "./backfill-error.ts";
import { holdPatiently } from "./hold-patiently.ts";

/** How long the backfill waits for the service, which holds the lease of a day while it reads the day. */
const WAIT_MS = 600_000;
const MAX_PASSES = 3;

/**
 * Backfills whole days with the date-paged list: the record of every event, but neither feature nor JA4. Each day is one
 * full pass with the lease, the ledger and the cursor of the service's own passes. So the service waits for it, an
 * interrupted pass continues where it stopped, and the end of the pass is evidence for a seal.
 */
export async function backfillByList(
  deps: BackfillDeps,
  { backfill }: RunningBackfill,
  signal: AbortSignal,
): Promise<Expired[]> {
  const { zoneId, to } = backfill;
  for (let dayStart = startOfDay(backfill.doneThrough); dayStart < to; dayStart += DAY_MS) {
    const name = walkLeaseName(zoneId, dayStart);
    const onWait = () => deps.onWait(`waiting: the service is reading ${toDay(dayStart)}`);
    await holdPatiently(
      deps.database,
      { name, waitMs: WAIT_MS, onWait },
      (lease) => walkToEnd(deps, { backfill, dayStart, lease }, AbortSignal.any([signal, lease.lost])),
      signal,
    );
    await advanceBackfill(deps.database.db, backfill, { through: dayStart + DAY_MS, newEvents: 0 });
  }
  return [];
}

interface BackfilledDay {
  readonly backfill: RunningBackfill["backfill"];
  readonly dayStart: number;
  readonly lease: { readonly name: string; readonly fence: number };
}

async function walkToEnd(
  deps: BackfillDeps,
  { backfill, dayStart, lease }: BackfilledDay,
  signal: AbortSignal,
): Promise<void> {
  const { zoneId } = backfill;
  const day = {
    zoneId,
    dayStart,
    lease,
    conclude: (tx: Parameters<typeof advanceBackfill>[0], { inserted }: { inserted: number }) =>
      advanceBackfill(tx, backfill, { through: null, newEvents: inserted }),
  };
  // If the platform refuses a token, the pass begins again.
  for (let passes = 0; passes < MAX_PASSES; passes++) {
    const state = await readListPass(deps.database.db, zoneId, toDay(dayStart));
    const plan = state?.passResult === null ? "resume" : "full";
    const ended = await walkDay(deps, day, { plan, state }, signal);
    signal.throwIfAborted();
    if (ended?.passResult === "full") return;
  }
  throw new BackfillError(
    "BACKFILL_LOOPED",
    `the list of ${toDay(dayStart)} cannot be read to its end: the platform repeats or refuses its tokens; use --route search`,
  );
}
