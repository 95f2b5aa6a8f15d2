import { copySearch } from "#jobs/ingest/copy-search.ts";
import type { BackfillDeps, Expired, RunningBackfill } from "./backfill-deps.ts";
import { BackfillError } from "./backfill-error.ts";
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
    async ({ isFirst: expectNew, ...hour }) => {
      const search = { ...hour, expectNew, zoneId: backfill.zoneId, lease };
      const { contradiction } = await copySearch(deps, search, signal);
      if (contradiction === null) return;
      const span = `${new Date(hour.from).toISOString()} to ${new Date(hour.to).toISOString()}`;
      throw new BackfillError(
        "BACKFILL_SHORT",
        `the search of ${span} ended early (${contradiction.reason}); run the same command again`,
      );
    },
    signal,
  );
}
