/** Seconds; the levels of the ladder, finest first. Every level is a whole number of the one before. */
export const BUCKET_WIDTHS = [60, 3_600, 86_400] as const;
export type BucketWidth = (typeof BUCKET_WIDTHS)[number];

/** Start, in epoch ms, of the half-open bucket [start, start + width) that holds a time. UTC, aligned to the epoch. */
export function bucketStart(timeMs: number, widthSeconds: BucketWidth): number {
  const widthMs = widthSeconds * 1_000;
  return Math.floor(timeMs / widthMs) * widthMs;
}

/** The first time, in epoch ms, that is no longer in the bucket of `timeMs`. */
export function bucketEnd(timeMs: number, widthSeconds: BucketWidth): number {
  return bucketStart(timeMs, widthSeconds) + widthSeconds * 1_000;
}

/** Starts of the buckets that share a moment with [fromMs, toMs), oldest first. */
export function* bucketStarts(fromMs: number, toMs: number, widthSeconds: BucketWidth): Generator<number> {
  for (let start = bucketStart(fromMs, widthSeconds); start < toMs; start += widthSeconds * 1_000) {
    if (fromMs < toMs) yield start;
  }
}
