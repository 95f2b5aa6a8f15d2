import type { LookRoute } from "./kinds.ts";
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
