import type { Search } from "./search.ts";

/**
 * Returns the first millisecond of each bucket but the first, ascending. Bucket i covers [from + i*width, from +
 * (i+1)*width) with width = (to - from) / buckets, which need not be whole. So an event at t is in bucket floor((t -
 * from) / width), which equals the number of these starts that are not after t. A window with fewer milliseconds than
 * buckets has empty ones, whose starts equal the next start. No event is older than 1970, so starts before 1970 are
 * moved to it: every event lies after them, and Postgres cannot hold a time as early as an int64 can.
 */
export function bucketStarts({ from, to, buckets }: Pick<Search, "from" | "to" | "buckets">): number[] {
  const span = BigInt(to) - BigInt(from);
  const count = BigInt(buckets);
  return Array.from({ length: Math.max(buckets - 1, 0) }, (_, index) => {
    // The smallest whole t - from with (t - from) * buckets >= i * span.
    const offset = (BigInt(index + 1) * span + count - 1n) / count;
    return Math.max(Number(BigInt(from) + offset), 0);
  });
}
