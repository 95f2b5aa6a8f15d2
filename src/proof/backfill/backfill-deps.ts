/** What every route of a backfill needs, and how its progress and errors are shown. */

import type { Backfill } from "#db/proof/backfills.ts";
import type { IngestObserver } from "#ingest/rules/read-page.ts";
import type { CopySearchDeps } from "#jobs/ingest/copy-search.ts";
import type { WalkDayDeps } from "#jobs/ingest/walk-pass.ts";
import { type Disposition, ServiceError } from "#lib/errors.ts";
import { createProgressLine, renderProgress } from "#lib/progress-bar.ts";
import type { EdgeClient } from "#platform/edge-client.ts";

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

/**
 * HEADER: the export lacks a column that identifies events. SHORT: the export or a search ended early. LOOPED: the list
 * of a day cannot be read to its end.
 */
type BackfillErrorCode = "BACKFILL_HEADER" | "BACKFILL_SHORT" | "BACKFILL_LOOPED";

/** Thrown if a backfill cannot continue. Its stored events stay, and a later backfill continues from there. */
export class BackfillError extends ServiceError {
  override readonly name = "BackfillError";
  readonly code: BackfillErrorCode;
  readonly disposition: Disposition;

  constructor(code: BackfillErrorCode, text: string) {
    super(text);
    this.code = code;
    this.disposition = code === "BACKFILL_SHORT" ? "retry" : "give-up";
  }
}

const DRAW_EVERY_MS = 100;
/** The rate is measured over the last few seconds. */
const RATE_OVER_MS = 5_000;

/** Draws the progress of a backfill after each page. Counts all events that were read, new or not. */
export function createBackfillProgress(
  stream: Parameters<typeof createProgressLine>[0],
  now: () => number = () => performance.now(),
) {
  const line = createProgressLine(stream);
  const samples = [{ at: now(), read: 0 }];
  let total = 0;
  let read = 0;
  let drawnAt = Number.NEGATIVE_INFINITY;

  function draw(): void {
    const at = now();
    if (at - drawnAt < DRAW_EVERY_MS) return;
    drawnAt = at;
    samples.push({ at, read });
    while (samples.length > 2 && at - (samples[0]?.at ?? at) > RATE_OVER_MS) samples.shift();
    const first = samples[0] ?? { at, read };
    const rate = at === first.at ? 0 : ((read - first.read) / (at - first.at)) * 1_000;
    line.update(renderProgress({ done: read, total, rate }));
  }

  const observer: IngestObserver = {
    pageStored({ entries }) {
      read += entries;
      draw();
    },
  };
  return {
    observer,
    /** Sets the total that a search has counted; 0 if the search failed. */
    expect(events: number): void {
      total = events;
      draw();
    },
    read: () => read,
    clear: () => line.clear(),
  };
}
