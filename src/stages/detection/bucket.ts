import type { BucketWidth } from "#model/kinds.ts";
/**
 * Returns the start, in epoch ms, of the half-open bucket [start, start + width) that holds a time. UTC, aligned to
 * the epoch.
 */
export function bucketStart(timeMs: number, widthSeconds: BucketWidth): number {
  const widthMs = widthSeconds * 1_000;
  return Math.floor(timeMs / widthMs) * widthMs;
}

/** Returns the first time, in epoch ms, after the bucket of `timeMs`. */
export function bucketEnd(timeMs: number, widthSeconds: BucketWidth): number {
  return bucketStart(timeMs, widthSeconds) + widthSeconds * 1_000;
}

/** Returns the starts of the buckets that overlap [fromMs, toMs), oldest first. */
export function* bucketStarts(fromMs: number, toMs: number, widthSeconds: BucketWidth): Generator<number> {
  for (let start = bucketStart(fromMs, widthSeconds); start < toMs; start += widthSeconds * 1_000) {
    if (fromMs < toMs) yield start;
  }
}
