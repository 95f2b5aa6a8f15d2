import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import type { Backfill } from "#db/ingest/backfills.ts";
import type { CopySearchDeps } from "#jobs/ingest/copy-search.ts";
import type { WalkDayDeps } from "#jobs/ingest/walk-day.ts";

/** The dependencies of a backfill by any route. */
export interface BackfillDeps extends CopySearchDeps, WalkDayDeps {
  readonly edge: Pick<EdgeClient, "searchEventLogs" | "readEventLogs" | "exportEventLogs">;
  /** Called with the reason when the backfill waits. */
  readonly onWait: (reason: string) => void;
}

export interface RunningBackfill {
  readonly backfill: Backfill;
  /** The lease of the zone's backfills: only one runs at a time. */
  readonly lease: { readonly name: string; readonly fence: number };
}

/** A span that the platform forgot before it was read; epoch ms. */
export interface Expired {
  readonly from: number;
  readonly to: number;
}
