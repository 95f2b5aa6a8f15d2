import { MINUTE_MS } from "#lib/units.ts";
import type { SearchMoment } from "./follow-searches.ts";

/** Up to this threshold a finding is of one minute; a series has none as low. */
const MOST_A_MINUTE = 14;

/** Times of one message; epoch ms. */
export interface RiseTimes {
  readonly firstAt: number;
  /** The event that reached the line; null if it is not known. */
  readonly reachedAt: number | null;
  /** When the alert was raised; null if it is not known. */
  readonly firedAt: number | null;
  readonly toldAt: number;
}

/** The parts of the time from the first event to the message, in ms. Null: not known. */
export interface RiseParts {
  /** From the first event to the one that reaches the line. */
  readonly floor: number | null;
  /** From there to the beginning of the next search. */
  readonly tick: number | null;
  /** Until the events of the search are stored. */
  readonly poll: number | null;
  /** Until the alert is raised: roll-up, detectors and the verdict. */
  readonly verdict: number | null;
  /** Until the message arrives. */
  readonly delivery: number | null;
}

export function splitDelay(
  { firstAt, reachedAt, firedAt, toldAt }: RiseTimes,
  searches: readonly SearchMoment[],
): RiseParts {
  const search = reachedAt === null ? undefined : searches.find(({ beganAt }) => beganAt > reachedAt);
  return {
    floor: reachedAt === null ? null : reachedAt - firstAt,
    tick: search === undefined || reachedAt === null ? null : search.beganAt - reachedAt,
    poll: search === undefined ? null : search.storedAt - search.beganAt,
    verdict: search === undefined || firedAt === null ? null : firedAt - search.storedAt,
    delivery: firedAt === null ? null : toldAt - firedAt,
  };
}

/** An event of the attack: when it happened, and what its series counts. */
export interface RiseEvent {
  readonly at: number;
  /** Null: every event counts. */
  readonly member: string | null;
}

/** Returns when a window of whole minutes and the running one first had as many different members as the threshold. */
export function findReached(
  events: readonly RiseEvent[],
  {
    windowMinutes,
    threshold,
    isOfSources,
  }: { windowMinutes: number; threshold: number; isOfSources: boolean },
  fromMs: number,
): number | null {
  const minutes = isOfSources && threshold <= MOST_A_MINUTE ? 1 : windowMinutes;
  let first = 0;
  for (const [i, { at }] of events.entries()) {
    const beginsAt = (Math.floor(at / MINUTE_MS) - minutes + 1) * MINUTE_MS;
    while ((events[first]?.at ?? at) < beginsAt) first += 1;
    const window = events.slice(first, i + 1);
    const count = isOfSources ? new Set(window.map(({ member }) => member)).size : window.length;
    if (at >= fromMs && count >= threshold) return at;
  }
  return null;
}
