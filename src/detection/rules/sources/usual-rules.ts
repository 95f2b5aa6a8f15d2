/** Returns which counts of a day are usual for an address, from its peaks of the week before. */

import { SOURCE_KINDS } from "#model/kinds.ts";
import type { KnownSources } from "#model/known-source.ts";
import { WINDOW_COUNT } from "../detection-settings.ts";
import type { UsualOf } from "./distinct-members.ts";
import { createSourceCounter } from "./source-counter.ts";
import type { SourceEvent } from "./source-event.ts";

export const USUAL_DAYS = 7;
/** With fewer days than this an address has no usual count. */
export const ENOUGH_DAYS = 2;

/** The largest counts of one address on one UTC day (since the epoch), by window. */
type DayPeaks = ReadonlyMap<number, ArrayLike<number>>;

/**
 * Returns the usual count of an address on a day, by window: the second largest of its daily peaks of the seven days
 * before. So a monitor or a shared address is known after two days, and one attack does not become usual.
 */
export function usualOnDay(peaks: DayPeaks, day: number): Int32Array | undefined {
  const known = [...peaks].filter(([on]) => on < day && on >= day - USUAL_DAYS).map(([, counts]) => counts);
  if (known.length < ENOUGH_DAYS) return undefined;
  return Int32Array.from({ length: WINDOW_COUNT }, (_, i) => {
    return known.map((counts) => counts[i] as number).sort((a, b) => b - a)[ENOUGH_DAYS - 1] as number;
  });
}

/** The daily peaks of a zone's addresses. */
export interface UsualRules {
  readonly note: (address: string, day: number, counts: ArrayLike<number>) => void;
  readonly usualOn: (day: number) => UsualOf;
}

export function createUsualRules(): UsualRules {
  const peaks = new Map<string, Map<number, Int32Array>>();
  let computed = { day: -1, usual: new Map<string, Int32Array>() };

  // A recount may ask for a day of the week before, so only peaks that are older than any such day needs are forgotten.
  function computeUsual(day: number) {
    const usual = new Map<string, Int32Array>();
    for (const [address, days] of peaks) {
      for (const on of days.keys()) if (on < day - 2 * USUAL_DAYS) days.delete(on);
      if (days.size === 0) peaks.delete(address);
      const found = usualOnDay(days, day);
      if (found !== undefined) usual.set(address, found);
    }
    return { day, usual };
  }

  return {
    note(address, day, counts) {
      const days = peaks.get(address) ?? new Map<number, Int32Array>();
      const largest = days.get(day) ?? new Int32Array(WINDOW_COUNT);
      for (let i = 0; i < WINDOW_COUNT; i += 1)
        largest[i] = Math.max(largest[i] as number, counts[i] as number);
      days.set(day, largest);
      peaks.set(address, days);
    },
    usualOn(day) {
      if (computed.day !== day) computed = computeUsual(day);
      const { usual } = computed;
      return (address) => usual.get(address);
    },
  };
}

export interface MinuteEvent extends SourceEvent {
  /** Since the epoch. */
  readonly minute: number;
}

interface CountedHour {
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
