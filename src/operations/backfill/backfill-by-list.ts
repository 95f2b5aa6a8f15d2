import { advanceBackfill } from "../../../db/ingest/backfills.ts";
import { readListPass } from "../../../db/ingest/list-passes.ts";
import { walkDay, walkLeaseName } from "../../../jobs/ingest/walk-day.ts";
import { DAY_MS } from "../../lib/units.ts";
import { startOfDay, toDay } from "../../model/horizon.ts";
import type { BackfillDeps, Expired, RunningBackfill } from "./backfill-deps.ts";
import { BackfillError } from "./backfill-error.ts";
import { holdPatiently } from "./hold-patiently.ts";

/** A page at a time is all that the service holds up while it reads the same day. */
const WAIT_MS = 600_000;
const MAX_PASSES = 3;

/**
 * By the date-paged list, whole days: the record of every event, but neither feature nor JA4. Each day is one full pass
 * under the lease, with the ledger and the cursor, of the service's own passes: the service steps aside for it, a pass
 * that was cut short goes on where it stood, whoever began it, and its end is evidence like any other's.
 */
export async function backfillByList(
  deps: BackfillDeps,
  { backfill }: RunningBackfill,
  signal: AbortSignal,
): Promise<Expired[]> {
  const { zoneId, to } = backfill;
  for (let dayStart = startOfDay(backfill.doneThrough); dayStart < to; dayStart += DAY_MS) {
    const name = walkLeaseName(zoneId, dayStart);
    const onWait = () => deps.onWait(`the service is reading ${toDay(dayStart)}: waiting for it`);
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
  // A token that is refused begins the pass again.
  for (let passes = 0; passes < MAX_PASSES; passes++) {
    const state = await readListPass(deps.database.db, zoneId, toDay(dayStart));
    const plan = state?.passResult === null ? "resume" : "full";
    const ended = await walkDay(deps, day, { plan, state }, signal);
    signal.throwIfAborted();
    if (ended?.passResult === "full") return;
  }
  throw new BackfillError(
    "BACKFILL_LOOPED",
    `the list of ${toDay(dayStart)} does not lead to its end: its tokens repeat or are refused; use --route search`,
  );
}
