import { HOUR_MS } from "../lib/units.ts";
import type { CoveredHour } from "../model/covered-hour.ts";
import { agreedFor, isSameLacks, type Look } from "../model/look.ts";

/** Two looks that show the same, at least this far apart, prove a difference. */
export const AGREE_MS = 10 * 60_000;
/** The same for an hour without events, and for a list that lacks events that search and counts agree on. */
export const AGREE_LONG_MS = HOUR_MS;

/** The stored events of an hour, as they are now. */
export interface HourContents {
  /** Distinct log ids. */
  readonly count: number;
  /** Digest of the log ids. */
  readonly ids: string;
  /** Events whose dimensions the search has not given. */
  readonly unresolved: number;
  /** Rows beyond the first of a log id. */
  readonly doubled: number;
}

export interface Proof {
  /** The hour's end plus the settle time. A look that began before this proves nothing. */
  readonly from: number;
  /** The date-paged list still serves the day. */
  readonly isListed: boolean;
  /** The platform's daily metrics agree with what is stored of the day. */
  readonly isDayConfirmed: boolean;
}

/** The reason why an hour cannot be sealed; a key of `LACKING`. */
export type Lacking = keyof typeof LACKING;

/** Texts for people that continue "This hour is not sealed: ". */
export const LACKING = {
  search: "a full search after the settle time is missing",
  counts: "a comparison with the platform's counts since the last change is missing",
  list: "a full list pass after the settle time is missing",
  missing: "the platform counts more events than are stored",
  surplus:
    "the platform counts fewer events than are stored, and the search does not show which events are missing there",
  lacksDiffer: "the search does not show stored events that the platform counts",
  zero: "the platform counts no event, but events are stored",
  doubled: "an event with the same log id is stored twice, at two different times",
  searchDiffers: "the search does not show the same events as are stored",
  listDiffers: "the list does not show the same events as are stored",
  unresolved: "the search has not returned every dimension of the stored events",
  empty: "no route shows an event, and a second look one hour after the first must confirm that",
} as const;

/** Returns whether a look began late enough to prove anything. */
export function isFresh(look: Look | undefined, { proofFrom }: CoveredHour, from: number): look is Look {
  return look !== undefined && look.at >= Math.max(from, proofFrom ?? 0);
}

/** Returns when the hour has settled; epoch ms. */
export function settledAt({ startsAt }: Pick<CoveredHour, "startsAt">, settleMs: number): number {
  return startsAt + HOUR_MS + settleMs;
}

/**
 * Returns the first proof that an hour lacks, or null. Search, list and counts each have to show exactly the stored
 * set. Two differences are accepted, because log ids explain them: stored events that the search has dropped and the
 * list shows, and stored events that search and counts agree on and the list lacks. Both are accepted only after
 * looks that agree over time.
 */
export function findLacking(hour: CoveredHour, stored: HourContents, proof: Proof): Lacking | null {
  const { looks, lastNewAt } = hour;
  const { search, list, counts } = looks;
  if (!isFresh(search, hour, proof.from)) return "search";
  if (!isFresh(counts, hour, proof.from) || (lastNewAt !== null && lastNewAt >= counts.at)) return "counts";
  if (proof.isListed && !isFresh(list, hour, proof.from)) return "list";
  if (stored.doubled > 0) return "doubled";
  if (hour.missingCells > 0) return "missing";
  if (stored.count === 0) return isEmptyProven(hour, proof) ? null : findNotEmpty(hour, proof);
  if (counts.count === 0) return "zero";
  const accounted = counts.count + (counts.lacks?.count ?? 0);
  if (accounted !== stored.count) return accounted > stored.count ? "missing" : "counts";

  const searchShows = isExactly(search, stored);
  // An earlier look at the list proves the stored events even if the list no longer serves the day.
  const listShows = isExactly(list, stored);
  if (!searchShows && !(listShows && isDropExplained(search, stored))) return "searchDiffers";
  if (!proof.isListed && lastNewAt !== null && lastNewAt >= search.at) return "search";
  if (proof.isListed && !listShows && !(searchShows && isListShort(list, stored))) return "listDiffers";
  // Counts that equal what is stored may still hide an event: one that replaces the event that the search lacks.
  if (!isSameLacks(searchShows ? undefined : search.lacks, counts.lacks))
    return hour.surplusCells > 0 ? "surplus" : "lacksDiffer";
  if (stored.unresolved > (searchShows ? 0 : (search.lacks?.count ?? 0))) return "unresolved";
  return null;
}

function isExactly(look: Look | undefined, { count, ids }: HourContents): boolean {
  return look?.count === count && look.ids === ids;
}

/** Returns whether the search shows everything but events that it has named as lacking, and has done so over time. */
function isDropExplained(search: Look, { count }: HourContents): boolean {
  const { lacks } = search;
  if (lacks === undefined || search.count === 0) return false;
  return search.count + lacks.count === count && agreedFor(search) >= AGREE_MS;
}

/** Returns whether the list shows fewer events than the search and the counts agree on, always the same ones. */
function isListShort(list: Look | undefined, { count }: HourContents): boolean {
  if (list === undefined || list.count === 0) return false;
  return list.count < count && agreedFor(list) >= AGREE_LONG_MS;
}

function isEmptyProven({ looks }: CoveredHour, { isListed, isDayConfirmed }: Proof): boolean {
  const needed = [looks.search, looks.counts, ...(isListed ? [looks.list] : [])];
  return needed.every((look) => look?.count === 0 && (isDayConfirmed || agreedFor(look) >= AGREE_LONG_MS));
}

function findNotEmpty({ looks: { search, list } }: CoveredHour, { isListed }: Proof): Lacking {
  if (search?.count !== 0) return "searchDiffers";
  return isListed && list?.count !== 0 ? "listDiffers" : "empty";
}

/**
 * Returns whether it is worth reading the hour's events, judged by the hour's own counter. `doubled` and `ids` are
 * not known here, so a true result is only a candidate.
 */
export function isWorthJudging(hour: CoveredHour, proof: Proof): boolean {
  const { looks, lastNewAt } = hour;
  const { search, list, counts } = looks;
  return (
    isFresh(search, hour, proof.from) &&
    isFresh(counts, hour, proof.from) &&
    (lastNewAt === null || lastNewAt < counts.at) &&
    (!proof.isListed || isFresh(list, hour, proof.from)) &&
    hour.missingCells === 0
  );
}
