/** What is lacking until an hour is proven. */
import { HOUR_MS } from "#lib/units.ts";
import {
  agreedFor,
  type CoveredHour,
  type HourContents,
  isSameLacks,
  type Look,
  type LookLacks,
} from "#model/covered-hour.ts";
import { joinIdDigests, NO_IDS } from "./id-digest.ts";

/** Longest observed time after which the platform still shows an event late. */
export const SETTLE_MS = 15 * 60_000;

/** Looks that lack the same events must agree for this long, if the list shows the events or they are few. */
export const AGREE_MS = 10 * 60_000;
/** Every other look that shows less than is stored must agree for this long, and so must looks that show nothing. */
export const AGREE_LONG_MS = HOUR_MS;

/** At most this many lacking events, or this share of the hour, are few. More may be a fault of the platform. */
const FEW_EVENTS = 3;
const FEW_SHARE = 0.02;

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
  doubled: "an event with the same log id is stored twice, at two different times",
  searchDiffers: "the search does not show the same events as are stored",
  listDiffers: "the list does not show the same events as are stored",
  searchShort: "the search does not show every stored event, and later looks must confirm that",
  listShort: "the list does not show every stored event, and later looks must confirm that",
  countsShort: "the platform counts fewer events than are stored, and later looks must confirm that",
  unresolved: "the search has not returned every dimension of the stored events",
  contested: "the search showed other values of stored events, and a later look must confirm them",
  empty: "no route shows an event, and a second look one hour after the first must confirm that",
} as const;

/** Returns whether a look began late enough to prove anything. */
export function isValidLook(look: Look | undefined, { proofFrom }: CoveredHour, from: number): look is Look {
  return look !== undefined && look.at >= Math.max(from, proofFrom ?? 0);
}

/** Returns when the hour has settled; epoch ms. */
export function settledAt({ startsAt }: Pick<CoveredHour, "startsAt">, settleMs: number): number {
  return startsAt + HOUR_MS + settleMs;
}

/**
 * Returns the first proof that an hour lacks, or null. Whatever a route shows or counts has to be stored. A stored event
 * that routes no longer show is accepted once looks have agreed on that:
 *
 * | Search | List | Counts | Looks agree for |
 * | --- | --- | --- | --- |
 * | all | all | all | - |
 * | lacks some events | all | lack the same | `AGREE_MS` |
 * | lacks a few events | lacks the same | lack the same | `AGREE_MS` |
 * | in every other case, each route that lacks events | | | `AGREE_LONG_MS` |
 *
 * The list counts only while it serves the day.
 */
export function findLacking(hour: CoveredHour, stored: HourContents, proof: Proof): Lacking | null {
  const { search, counts } = hour.looks;
  if (!isValidLook(search, hour, proof.from)) return "search";
  if (!isValidLook(counts, hour, proof.from) || (hour.lastNewAt ?? 0) >= counts.at) return "counts";
  if (proof.isListed && !isValidLook(hour.looks.list, hour, proof.from)) return "list";
  if (stored.doubled > 0) return "doubled";
  if (hour.missingCells > 0) return "missing";

  const list = proof.isListed ? hour.looks.list : undefined;
  if (!isWithin(search, search.lacks, stored)) return "searchDiffers";
  if (list !== undefined && isBeyond(list, stored)) return "listDiffers";
  const counted = counts.count + (counts.lacks?.count ?? 0);
  if (counted !== stored.count) return counted > stored.count ? "missing" : "counts";
  if (stored.count === 0) return isEmptyProven([search, counts, list], proof) ? null : "empty";

  const isListWhole = list === undefined || isWithin(list, list.unlisted, stored);
  const isShownByList = list !== undefined && isListWhole;
  const isNowhere = isFew(search.lacks, stored) && (isListWhole || isWithin(list, search.lacks, stored));
  const isAgreed =
    isSameLacks(search.lacks, counts.lacks) && counts.count > 0 && (isShownByList || isNowhere);
  const agreeMs = isAgreed ? AGREE_MS : AGREE_LONG_MS;
  if (search.lacks !== undefined && agreedFor(search) < agreeMs) return "searchShort";
  if (list !== undefined && !isListWhole && agreedFor(list) < agreeMs) return "listShort";
  if (counts.lacks !== undefined && agreedFor(counts) < agreeMs) return "countsShort";
  if (stored.unresolved > (search.lacks?.count ?? 0)) return "unresolved";
  if (stored.contestedAt !== null && search.at < stored.contestedAt + AGREE_LONG_MS) return "contested";
  return null;
}

/** Returns whether a look showed exactly the stored events, without those that are named as lacking. */
function isWithin(
  look: Look,
  lacks: Pick<LookLacks, "count" | "digest"> = { count: 0 },
  { count, ids }: HourContents,
): boolean {
  return look.count + lacks.count === count && joinIdDigests(look.ids, lacks.digest ?? NO_IDS) === ids;
}

/** Returns whether the list showed as many events as are stored or more, but not the same ones. */
function isBeyond(list: Look, { count, ids }: HourContents): boolean {
  return list.count > count || (list.count === count && list.ids !== ids);
}

function isFew(lacks: LookLacks | undefined, { count }: HourContents): boolean {
  return (lacks?.count ?? 0) <= Math.max(FEW_EVENTS, count * FEW_SHARE);
}

function isEmptyProven(looks: readonly (Look | undefined)[], { isDayConfirmed }: Proof): boolean {
  return looks.every((look) => look === undefined || isDayConfirmed || agreedFor(look) >= AGREE_LONG_MS);
}

/**
 * Returns whether it is worth reading the hour's events, judged by the hour's own counter. `doubled` and `ids` are
 * not known here, so a true result is only a candidate.
 */
export function isWorthJudging(hour: CoveredHour, proof: Proof): boolean {
  const { looks, lastNewAt } = hour;
  const { search, list, counts } = looks;
  return (
    isValidLook(search, hour, proof.from) &&
    isValidLook(counts, hour, proof.from) &&
    (lastNewAt === null || lastNewAt < counts.at) &&
    (!proof.isListed || isValidLook(list, hour, proof.from)) &&
    hour.missingCells === 0
  );
}
