/** Stored events that a look did not show. */
export interface LookLacks {
  readonly count: number;
  /** Number of them that the search route had shown before. */
  readonly known: number;
  /** The first log ids, in order. Empty for counts. */
  readonly ids: readonly string[];
  /** Number of events by rule; a rule that is not known is ''. */
  readonly rules: Readonly<Record<string, number>>;
}

/** The result of one complete reading of an hour by one route; times in epoch ms. */
export interface Look {
  /** When the look began. */
  readonly at: number;
  /** Start of the first look of the unbroken run of looks that all showed exactly the same. */
  readonly since: number;
  readonly pages: number;
  readonly count: number;
  /** Digest of the log ids that were shown, or for counts of the cells. */
  readonly ids: string;
  /** The highest count that this route has shown of this hour. */
  readonly peak: number;
  readonly lacks?: LookLacks;
}

/** The latest look of each route; a route that has not been read completely has none. */
export interface HourLooks {
  readonly list?: Look;
  readonly search?: Look;
  readonly counts?: Look;
}

export type LookRoute = keyof HourLooks;

export type SeenHour = Pick<Look, "at" | "pages" | "count" | "ids" | "lacks">;

/** Returns the look that follows `before`. The earlier look stays if it began later than the new one. */
export function nextLook(before: Look | undefined, { lacks, ...seen }: SeenHour): Look {
  if (before !== undefined && before.at > seen.at) return before;
  const isSame = before !== undefined && before.ids === seen.ids && before.count === seen.count;
  return {
    ...seen,
    since: isSame ? before.since : seen.at,
    peak: Math.max(before?.peak ?? 0, seen.count),
    ...(lacks === undefined ? {} : { lacks }),
  };
}

/** Returns how long two or more looks that showed exactly the same have lasted; ms. */
export function agreedFor({ at, since }: Look): number {
  return at - since;
}

/**
 * Returns whether two looks lack the same number of events of every rule. Lacks whose rules are not named equal no
 * others.
 */
export function isSameLacks(a: NamedLacks = NO_LACKS, b: NamedLacks = NO_LACKS): boolean {
  const rules = Object.keys(a.rules);
  if (a.count !== b.count || rules.length !== Object.keys(b.rules).length) return false;
  return (a.count === 0 || rules.length > 0) && rules.every((rule) => a.rules[rule] === b.rules[rule]);
}

type NamedLacks = Pick<LookLacks, "count" | "rules">;
const NO_LACKS: NamedLacks = { count: 0, rules: {} };
