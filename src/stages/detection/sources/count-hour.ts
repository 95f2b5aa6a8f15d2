import { SOURCE_KINDS } from "#model/kinds.ts";
import type { KnownSources } from "#model/known-source.ts";
import { WINDOW_COUNT } from "../thresholds/windows.ts";
import type { UsualOf } from "./distinct-members.ts";
import { createSourceCounter } from "./source-counter.ts";
import type { SourceEvent } from "./source-event.ts";

export interface MinuteEvent extends SourceEvent {
  /** Since the epoch. */
  readonly minute: number;
}

export interface CountedHour {
  /** The largest counts of each series in turn, by window. */
  readonly peaks: readonly number[];
  /** The largest counts of each address that triggered many rules, by window. */
  readonly addresses: ReadonlyMap<string, Int32Array>;
}

/**
 * Counts a clock hour from its events and those of the 59 minutes before it, in the order of time. Known sources are
 * left out.
 */
export async function countHour(
  hour: number,
  parts: AsyncIterable<{ readonly events: readonly MinuteEvent[] }>,
  { usualOf, isKnown }: { usualOf: UsualOf; isKnown: KnownSources["isKnown"] },
): Promise<CountedHour> {
  const counter = createSourceCounter();
  const peaks = SOURCE_KINDS.map(() => new Int32Array(WINDOW_COUNT));
  const addresses = new Map<string, Int32Array>();
  const raise = (to: Int32Array, counts: ArrayLike<number>) => {
    for (let i = 0; i < WINDOW_COUNT; i += 1) to[i] = Math.max(to[i] as number, counts[i] as number);
  };
  function close(minute: number): void {
    if (minute < hour * 60) return;
    const counts = counter.close(minute, usualOf, (address, found) => {
      const largest = addresses.get(address) ?? new Int32Array(WINDOW_COUNT);
      raise(largest, found);
      addresses.set(address, largest);
    });
    for (const [i, kind] of SOURCE_KINDS.entries()) raise(peaks[i] as Int32Array, counts[kind]);
  }
  let current: number | null = null;
  for await (const { events } of parts) {
    for (const event of events) {
      if (current !== null && event.minute > current) close(current);
      current = event.minute;
      if (isKnown(event)) continue;
      counter.take(event, event.minute);
    }
  }
  if (current !== null) close(current);
  return { peaks: peaks.flatMap((counts) => [...counts]), addresses };
}
