import { createProgressLine, renderProgress } from "#lib/progress-bar.ts";
import type { IngestObserver } from "#stages/ingest/ingest-observer.ts";

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
