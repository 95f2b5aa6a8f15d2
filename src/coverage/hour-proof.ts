import { HOUR_MS } from "../lib/units.ts";
import type { CoveredHour } from "../model/covered-hour.ts";
import { agreedFor, isSameCounts, type Look } from "../model/look.ts";

/** Two looks at least this far apart that show the same make a difference a fact of the platform. */
export const AGREE_MS = 10 * 60_000;
/** The same for an hour without events, and for a list that does not show what search and counts agree on. */
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
  /** Start of the hour's end plus the settle time; a look that began before it proves nothing. */
  readonly from: number;
  /** The date-paged list still serves the day. */
  readonly isListed: boolean;
  /** The platform's daily metrics agree with what is stored of the day. */
  readonly isDayConfirmed: boolean;
}

/** What keeps an hour from being sealed; the keys of `LACKING`. */
export type Lacking = keyof typeof LACKING;

/** For people: continues "This hour is not sealed: ". */
export const LACKING = {
  search: "a full search after the settle time is missing",
  counts: "a comparison with the platform's counts since the last change is missing",
  list: "a full list pass after the settle time is missing",
  missing: "the platform counts more events than are stored",
  surplus:
    "the platform counts fewer events than are stored, and the search does not show which events are missing there",
  zero: "the platform counts no event, but events are stored",
  doubled: "an event with the same log id is stored twice, at two different times",
  searchDiffers: "the search does not show the same events as are stored",
  listDiffers: "the list does not show the same events as are stored",
  unresolved: "the search has not returned every dimension of the stored events",
  empty: "no route shows an event, and a second look one hour after the first must confirm that",
} as const;

/** Whether a look began late enough to prove anything. */
export function isFresh(look: Look | undefined, { proofFrom }: CoveredHour, from: number): look is Look {
  return look !== undefined && look.at >= Math.max(from, proofFrom ?? 0);
}

/** Start of the hour's settled time; epoch ms. */
export function settledAt({ startsAt }: Pick<CoveredHour, "startsAt">, settleMs: number): number {
  return startsAt + HOUR_MS + settleMs;
}

/**
 * The first thing that an hour lacks to be proven complete, or null. Search, list and counts each have to show exactly the
 * stored set. Two differences are accepted, because log ids explain them: stored events that the search has dropped and the
 * list shows, and stored events that search and counts agree on and the list lacks; both only after looks that agree over time.
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
  const listShows = proof.isListed && isExactly(list, stored);
  if (!searchShows && !(listShows && isDropExplained(search, stored))) return "searchDiffers";
  if (!proof.isListed && lastNewAt !== null && lastNewAt >= search.at) return "search";
  if (proof.isListed && !listShows && !(searchShows && isListShort(list, stored))) return "listDiffers";
  if (hour.surplusCells > 0 && !isSurplusExplained(search, counts)) return "surplus";
  if (stored.unresolved > (searchShows ? 0 : (search.lacks?.count ?? 0))) return "unresolved";
  return null;
}

function isExactly(look: Look | undefined, { count, ids }: HourContents): boolean {
  return look?.count === count && look.ids === ids;
}

/** The search shows everything but events that it has named as lacking, and has done so over time. */
function isDropExplained(search: Look, { count }: HourContents): boolean {
  const { lacks } = search;
  if (lacks === undefined || search.count === 0) return false;
  return search.count + lacks.count === count && agreedFor(search) >= AGREE_MS;
}

/** The list shows fewer events than the search and the counts agree on, always the same ones. */
function isListShort(list: Look | undefined, { count }: HourContents): boolean {
  if (list === undefined || list.count === 0) return false;
  return list.count < count && agreedFor(list) >= AGREE_LONG_MS;
}

/** The counts lack exactly the events that the search lacks. */
function isSurplusExplained({ lacks: searched }: Look, { lacks: counted }: Look): boolean {
  return searched !== undefined && counted !== undefined && isSameCounts(searched.rules, counted.rules);
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
 * The same question by the hour's own counter, without reading its events: whether it is worth reading them. `doubled` and
 * `ids` are not known here, so a null is only a candidate.
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
