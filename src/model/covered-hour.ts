/** What is known of an hour: its counts, its looks and what was copied. */
import type { BackfillRoute, HourState, LookRoute } from "./kinds.ts";

/** Reason of a gap with imported events, before the zone was watched. */
export const IMPORTED = "The events of this hour were imported, and nothing proves that they are complete.";
/** Reason of a gap between imported hours and the first one that was watched. */
export const NOT_WATCHED = "The zone was not watched yet, and no event of this hour was imported.";
/** Reasons of the hours that an import has entered. They are no loss, and the watch of the zone began after them. */
export const BEFORE_WATCH: readonly string[] = [IMPORTED, NOT_WATCHED];

/** One hour of a zone and its completeness; times in epoch ms, null if the event has not happened. */
export interface CoveredHour {
  readonly startsAt: number;
  readonly state: HourState;
  /** End of the part that the search route has covered. */
  readonly searchedThrough: number | null;
  /** Time at which the hour last gained an event. */
  readonly lastNewAt: number | null;
  /** Start of the latest complete search over the whole hour that began after it had settled. */
  readonly closingSearchAt: number | null;
  /** Time at which the platform's counts were last read and compared. */
  readonly reconciledAt: number | null;
  readonly upstreamCount: number | null;
  readonly storedCount: number;
  /** Number of rules of which that comparison found fewer events stored than the platform counts. */
  readonly missingCells: number;
  /** Number of rules of which it found more events stored. */
  readonly surplusCells: number;
  /** Time at which a seal was last withdrawn. */
  readonly reopenedAt: number | null;
  readonly reopenReason: string | null;
  /** Looks that began before this time prove nothing. */
  readonly proofFrom: number | null;
  /** Time at which the list last stored an event that the search had not shown; null if every event is resolved. */
  readonly unresolvedSince: number | null;
  readonly looks: HourLooks;
}

/** A request to read an hour again; times in epoch ms. */
export interface ReadAgain {
  /** When it was made. The hours of one backfill have the same time. */
  readonly at: number;
  readonly by: BackfillRoute;
  /** Events of the hour that were stored then. */
  readonly stored: number;
  /** When the reading began that came to the end of the hour, or to its time; omitted until then. */
  readonly doneAt?: number;
}

/** The full row of one hour of a zone; times in epoch ms. */
export interface CoverageHour extends CoveredHour {
  readonly sealedAt: number | null;
  readonly gapReason: string | null;
  /** When the hour was judged with all events that are stored of it, and with which settings; null if it was not. */
  readonly judgedAt: number | null;
  readonly judgedWith: string | null;
  /** The evidence for the seal. */
  readonly evidence: unknown;
}

/** The stored events of an hour. */
export interface HourContents {
  /** Distinct log ids. */
  readonly count: number;
  /** Exclusive or of the first eight bytes of the SHA-256 of each log id, as hex. */
  readonly ids: string;
  /** Events whose dimensions the search has not given. */
  readonly unresolved: number;
  /** Rows beyond the first of a log id. */
  readonly doubled: number;
  /** When a look first showed another value that no later look has confirmed or dismissed, epoch ms; null if none did. */
  readonly contestedAt: number | null;
  /** Values that later looks changed. */
  readonly revised: number;
}

/** Stored events that a look did not show. */
export interface LookLacks {
  readonly count: number;
  /** The first log ids, in order. Empty for counts. */
  readonly ids: readonly string[];
  /** Digest of all their log ids. Omitted for counts, and by earlier versions. */
  readonly digest?: string;
  /** Number of events by rule. The key of an unknown rule is ''. */
  readonly rules: Readonly<Record<string, number>>;
}

/** Stored events of features of which a look showed no event, although it showed every event of the other features. */
export interface LookUnlisted {
  readonly features: readonly string[];
  readonly count: number;
  /** Digest of their log ids. */
  readonly digest: string;
}

/** The result of one complete reading of an hour by one route; times in epoch ms. */
export interface Look {
  /** Time at which the look began. */
  readonly at: number;
  /** Start of the first look in an unbroken series of looks with exactly the same result. */
  readonly since: number;
  readonly pages: number;
  readonly count: number;
  /** Digest of the log ids that were shown; for counts, of the cells. */
  readonly ids: string;
  readonly lacks?: LookLacks;
  /** Set only by a look at the list. */
  readonly unlisted?: LookUnlisted;
  /** Entries of the list's whole day that could not be read and belong to no hour. They are quarantined. */
  readonly unreadable?: number;
}

/** The latest look of each route; a route that has not been read completely has none. */
export type HourLooks = Readonly<Partial<Record<LookRoute, Look>>>;

export type SeenHour = Omit<Look, "since">;

/** Returns the look that follows `before`. The earlier look stays if it began later than the new one. */
export function nextLook(before: Look | undefined, seen: SeenHour): Look {
  if (before !== undefined && before.at > seen.at) return before;
  const isSame = before !== undefined && before.ids === seen.ids && before.count === seen.count;
  return { ...seen, since: isSame ? before.since : seen.at };
}

/** Returns the time over which two or more looks showed exactly the same; ms. */
export function agreedFor({ at, since }: Look): number {
  return at - since;
}

/**
 * Returns whether two looks lack the same number of events of every rule. Lacks without named rules equal no others.
 */
export function isSameLacks(a: NamedLacks = NO_LACKS, b: NamedLacks = NO_LACKS): boolean {
  const rules = Object.keys(a.rules);
  if (a.count !== b.count || rules.length !== Object.keys(b.rules).length) return false;
  return (a.count === 0 || rules.length > 0) && rules.every((rule) => a.rules[rule] === b.rules[rule]);
}

type NamedLacks = Pick<LookLacks, "count" | "rules">;
const NO_LACKS: NamedLacks = { count: 0, rules: {} };

/** Knowledge about an hour of a zone, without its events. Hours and minutes are numbered since the epoch. */
export interface CopiedHour {
  readonly hour: number;
  /** The platform has forgotten the hour. */
  readonly isGap: boolean;
  /** Sealed, or searched to its end. */
  readonly isCopied: boolean;
  /** Whether every minute was judged with all events that are stored. */
  readonly isJudged: boolean;
  readonly events: number;
  readonly isSearched: boolean;
  /** When the hour last gained an event, epoch ms. */
  readonly lastNewAt: number | null;
  /** The minutes that the detector of rules has judged, [from, through); null if none. */
  readonly rulesFrom: number | null;
  readonly rulesThrough: number | null;
}
