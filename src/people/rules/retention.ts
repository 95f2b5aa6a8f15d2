import { DAY_MS } from "#lib/units.ts";

/** How many days each class of data is kept. A day is deleted as a whole. */
export interface Retention {
  /** Records as received. */
  readonly rawDays: number;
  /** Full addresses. Afterwards a pseudonym replaces the address. */
  readonly ipDays: number;
  readonly eventDays: number;
  /** Counts without any personal data, and the alerts about spikes. */
  readonly rollUpDays: number;
}

/** Ingest accepts no event of a day longer ago than this. */
export const INGEST_DAYS = 11;

/**
 * Returns the retention with its dependencies applied. A record holds the address and more, so it is deleted when
 * either is. Counts are kept at least as long as events.
 */
export function settleRetention(given: Retention): Retention {
  return {
    ...given,
    rawDays: Math.min(given.rawDays, given.ipDays, given.eventDays),
    rollUpDays: Math.max(given.rollUpDays, given.eventDays),
  };
}

/** Returns the first moment (epoch ms, start of a UTC day) that is still kept. */
export function keptFrom(now: number, days: number): number {
  const at = now - days * DAY_MS;
  return at - (at % DAY_MS);
}
