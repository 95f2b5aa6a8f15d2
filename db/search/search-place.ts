import type { Span } from "../../src/model/span.ts";
import type { DayTimes } from "./day-times.ts";
import type { CountedVersion } from "./search-memory.ts";
import type { Segment } from "./search-segments.ts";

/** Passing over fewer events costs less than reading where they are. */
const WORTH_SKIPPING = 500;

type ReadTimes = (counted: CountedVersion) => Promise<DayTimes>;

/** Where the events lie that a page shows: the newest `skip` of the span are before it. */
export interface Place extends Span {
  readonly skip: number;
}

/**
 * The least part of the window that holds `limit` events, or all there are, after its newest `offset`. Counted days are
 * cut by their times.
 */
export async function locatePage(
  segments: readonly Segment[],
  { offset, limit }: { offset: number; limit: number },
  readTimes: ReadTimes = async () => new Int32Array(),
): Promise<Place> {
  let before = 0;
  let index = 0;
  for (const { total } of segments) {
    if (before + total > offset) break;
    before += total;
    index++;
  }
  const newest = segments[index];
  if (newest === undefined) return { from: 0, to: 0, skip: 0 };
  const { to, passed } = await skipEvents(newest, offset - before, readTimes);
  let { from } = newest;
  let held = before + newest.total;
  for (let next = index + 1; held < offset + limit && next < segments.length; next++) {
    from = segments[next]?.from ?? from;
    held += segments[next]?.total ?? 0;
  }
  return { from, to, skip: offset - before - passed };
}

/** The end of the millisecond in which the event after the newest `skip` of a segment lies, and how many are after it. */
async function skipEvents({ counted, from, to, total }: Segment, skip: number, readTimes: ReadTimes) {
  if (counted === null || skip < WORTH_SKIPPING) return { to, passed: 0 };
  const times = await readTimes(counted);
  const ms = times[total - 1 - skip];
  if (times.length !== total || ms === undefined) return { to, passed: 0 };
  let end = total - skip;
  while (times[end] === ms) end++;
  return { to: from + ms + 1, passed: total - end };
}
