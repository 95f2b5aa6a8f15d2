import { LRUCache } from "lru-cache";
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
  const days = new LRUCache<string, { readonly version: string; readonly times: DayTimes }>({
    maxSize: mostTimes,
    sizeCalculation: ({ times }) => Math.max(1, times.length),
  });
  const keyOf = ({ zoneId, day }: CountedVersion) => `${zoneId} ${day}`;
  return {
    kept: null,
    timesOf(counted) {
      const known = days.get(keyOf(counted));
      return known?.version === counted.version ? known.times : undefined;
    },
    rememberTimes(counted, times) {
      days.set(keyOf(counted), { version: counted.version, times });
    },
  };
}
