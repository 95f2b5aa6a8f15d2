import { copySearch } from "../../../jobs/ingest/copy-search.ts";
import type { BackfillDeps, Expired, RunningBackfill } from "./backfill-deps.ts";
import { backfillHours } from "./backfill-hours.ts";

/** Backfills with flat searches in pages of 500: every dimension and the message of each event. */
export function backfillBySearch(
  deps: BackfillDeps,
  running: RunningBackfill,
  signal: AbortSignal,
): Promise<Expired[]> {
  const { lease, backfill } = running;
  return backfillHours(
    deps,
    { ...running, isProof: true },
    ({ isFirst: expectNew, ...hour }) =>
      copySearch(deps, { ...hour, expectNew, zoneId: backfill.zoneId, lease }, signal),
    signal,
  );
}
