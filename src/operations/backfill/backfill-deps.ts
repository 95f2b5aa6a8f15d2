import type { Backfill } from "../../../db/ingest/backfills.ts";
import type { CopySearchDeps } from "../../../jobs/ingest/copy-search.ts";
import type { WalkDayDeps } from "../../../jobs/ingest/walk-day.ts";
import type { EdgeClient } from "../../edge/edge-client.ts";

/** What a backfill by any route works with. */
export interface BackfillDeps extends CopySearchDeps, WalkDayDeps {
  readonly edge: Pick<EdgeClient, "searchEventLogs" | "readEventLogs" | "exportEventLogs">;
  /** Told why nothing is happening. */
  readonly onWait: (reason: string) => void;
}

export interface RunningBackfill {
  readonly backfill: Backfill;
  /** Of the zone's backfills: one at a time. */
  readonly lease: { readonly name: string; readonly fence: number };
}

/** A span that the platform forgot before it was its turn; epoch ms. */
export interface Expired {
  readonly from: number;
  readonly to: number;
}
