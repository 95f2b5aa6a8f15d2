import { HOUR_MS } from "../lib/units.ts";
import type { CoveredHour } from "../model/covered-hour.ts";
import { agreedFor, isSameLacks, type Look, type LookRoute } from "../model/look.ts";
import { AGREE_LONG_MS, AGREE_MS } from "./hour-proof.ts";

/** A route whose latest look at an hour shows less than it showed before, without an explanation. */
export interface Contradiction {
  readonly startsAt: number;
  /** A sentence for people. */
  readonly reason: string;
}

const NAMES: Record<LookRoute, string> = {
  list: "The list shows",
  search: "The search shows",
  counts: "The platform counts",
};

/**
 * Returns the hours for which a route shows less than before; `hours` are those that the platform still has, oldest
 * first.
 */
export function findContradictions(route: LookRoute, hours: readonly CoveredHour[]): Contradiction[] {
  return hours.flatMap((hour) => {
    const look = hour.looks[route];
    if (look === undefined || hour.state === "gap") return [];
    const known = Math.max(look.peak, look.count + (look.lacks?.known ?? 0));
    if (look.count >= known || isExplained(route, look, hour)) return [];
    const { startsAt } = hour;
    const events = `${look.count} of ${known} events of the hour from ${toText(startsAt)} UTC`;
    return [{ startsAt, reason: `${NAMES[route]} ${events}.` }];
  });
}

/**
 * Returns whether the lower look is accepted. The route may have shown too much before, for example under wrong
 * times. The caller checks whether the look equals the stored events.
 */
function isLowerForGood(look: Look): boolean {
  return look.count < look.peak && agreedFor(look) >= AGREE_LONG_MS;
}

/** Returns whether a look that shows less than an earlier one has to be repeated until the difference is explained. */
export function isLowerForNow(look: Look): boolean {
  return look.count < look.peak && agreedFor(look) < AGREE_LONG_MS;
}

/** Returns whether the other routes account for the events, and the look has been the same for long enough. */
function isExplained(
  route: LookRoute,
  look: Look,
  { looks, storedCount, missingCells }: CoveredHour,
): boolean {
  const { list, search } = looks;
  if (look.count === storedCount && isLowerForGood(look) && missingCells === 0) return true;
  if (look.count === 0 || missingCells > 0) return false;
  if (route === "list") return agreedFor(look) >= AGREE_LONG_MS && search?.count === storedCount;
  const isDropped =
    search?.lacks !== undefined &&
    agreedFor(search) >= AGREE_MS &&
    list?.count === storedCount &&
    search.count + search.lacks.count === storedCount;
  if (route === "search") return isDropped;
  return isDropped && isSameLacks(look.lacks, search.lacks);
}

/** An hour with fewer events than this may be followed by an hour without any. */
const BUSY_EVENTS = 10;
const BUSY_HOURS = 24;

/**
 * Returns the first settled hour without any event after a day whose every hour had at least ten. Returns null when
 * there is none, or when looks an hour apart have agreed on it.
 */
export function findSilence(hours: readonly CoveredHour[]): Contradiction | null {
  for (const [index, hour] of hours.entries()) {
    const before = hours.slice(Math.max(0, index - BUSY_HOURS), index);
    const { search, counts } = hour.looks;
    const isEmpty = hour.storedCount === 0 && search?.count === 0 && counts?.count === 0;
    if (!isEmpty || before.length < BUSY_HOURS || hour.state !== "open") continue;
    if (!before.every(({ storedCount }) => storedCount >= BUSY_EVENTS)) continue;
    if (agreedFor(search) >= AGREE_LONG_MS && agreedFor(counts) >= AGREE_LONG_MS) continue;
    const { startsAt } = hour;
    const reason = `No route shows an event of the hour from ${toText(startsAt)} UTC; each of the ${BUSY_HOURS} hours before it had at least ${BUSY_EVENTS}.`;
    return { startsAt, reason };
  }
  return null;
}

function toText(at: number): string {
  return new Date(at - (at % HOUR_MS)).toISOString().slice(0, 16).replace("T", " ");
}
