import { DAY_MS } from "../lib/units.ts";

/** How many days each class of data is kept; a day goes as a whole. */
export interface Retention {
  /** Records as received. */
  readonly rawDays: number;
  /** Full addresses; from then on a pseudonym stands there. */
  readonly ipDays: number;
  readonly eventDays: number;
  /** Counts without any personal data, and what was told of spikes. */
  readonly rollUpDays: number;
}

/** Longer than it may come back to a day, ingest takes no event of it. */
export const INGEST_DAYS = 11;

/** A record holds the address and more, so it goes when either goes; counts are kept at least as long as events. */
export function settleRetention(given: Retention): Retention {
  return {
    ...given,
    rawDays: Math.min(given.rawDays, given.ipDays, given.eventDays),
    rollUpDays: Math.max(given.rollUpDays, given.eventDays),
  };
}

/** The first moment (epoch ms, start of a UTC day) that is still kept. */
export function keptFrom(now: number, days: number): number {
  const at = now - days * DAY_MS;
  return at - (at % DAY_MS);
}
