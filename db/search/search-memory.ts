import type pg from "pg";
import type { Database } from "../client.ts";
import type { DayTimes } from "./day-times.ts";

/** Days that follow each other: the first, days since 1970, and how many. */
interface DayRun {
  readonly first: number;
  readonly days: number;
}

/** The days that waf_events has partitions for, ascending, and what tells this set of partitions from every other. */
export interface KeptDays {
  readonly partitions: string;
  readonly runs: readonly DayRun[];
}

/** A closed day as it was counted: a version of its row of cube_days. */
export interface CountedVersion {
  readonly zoneId: number;
  /** Days since 1970. */
  readonly day: number;
  readonly version: string;
}

/** 16 MB of times: some sixty busy days. */
const MOST_TIMES = 4_000_000;

export interface SearchMemory {
  kept: KeptDays | null;
  timesOf(counted: CountedVersion): DayTimes | undefined;
  rememberTimes(counted: CountedVersion, times: DayTimes): void;
}

const memories = new WeakMap<pg.Pool, SearchMemory>();

/**
 * What searches of a database remember from one to the next. Nothing of it is ever believed by itself: a statement of
 * the search at hand says which version is the true one, and only that version is used.
 */
export function memoryOf({ pool }: Pick<Database, "pool">): SearchMemory {
  const known = memories.get(pool);
  if (known !== undefined) return known;
  const memory = createSearchMemory(MOST_TIMES);
  memories.set(pool, memory);
  return memory;
}

/** Keeps so many times at most: days that nobody asked for longest are forgotten first. */
export function createSearchMemory(mostTimes: number): SearchMemory {
  const days = new Map<string, { readonly version: string; readonly times: DayTimes }>();
  let held = 0;
  const forget = (key: string) => {
    held -= days.get(key)?.times.length ?? 0;
    days.delete(key);
  };
  return {
    kept: null,
    timesOf({ zoneId, day, version }) {
      const key = `${zoneId} ${day}`;
      const known = days.get(key);
      if (known?.version !== version) return undefined;
      days.delete(key);
      days.set(key, known);
      return known.times;
    },
    rememberTimes({ zoneId, day, version }, times) {
      const key = `${zoneId} ${day}`;
      forget(key);
      if (times.length > mostTimes) return;
      days.set(key, { version, times });
      held += times.length;
      for (const oldest of days.keys()) {
        if (held <= mostTimes) break;
        forget(oldest);
      }
    },
  };
}
