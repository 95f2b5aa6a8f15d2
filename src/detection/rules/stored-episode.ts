import { isDeepStrictEqual } from "node:util";
import { MINUTE_MS } from "#lib/units.ts";
import type { GradedBy, WindowMinutes } from "#model/kinds.ts";
import type { Episode } from "./episode.ts";

/** An episode as stored in a row. */
export interface StoredEpisode {
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  readonly lastActiveAt: Date;
  readonly judgedThrough: Date;
  readonly baseline: number;
  readonly threshold: number;
  readonly score: number;
  readonly peak: number;
  readonly windowCount: number;
  readonly windowMinutes: number;
  readonly memberOf: number | null;
  readonly addresses: number | null;
  readonly mainSenders: number | null;
  readonly gradedBy: GradedBy | null;
  readonly severity: Episode["severity"];
  readonly kind: Episode["kind"];
}

/** Returns the end of the minute that contains the time, in minutes since the epoch: what began while a minute ran. */
export const toMinute = (date: Date) => Math.ceil(date.getTime() / MINUTE_MS);
const toDate = (minute: number) => new Date(minute * MINUTE_MS);

export function toEpisode(stored: StoredEpisode): Episode {
  const { threshold, score, peak, severity, kind } = stored;
  return {
    openedAt: toMinute(stored.openedAt),
    lastActiveAt: toMinute(stored.lastActiveAt),
    windowMinutes: stored.windowMinutes as WindowMinutes,
    count: stored.windowCount,
    usual: stored.baseline,
    threshold,
    score,
    peak,
    severity,
    kind,
  };
}

/**
 * Converts an episode to its stored form. `lastTested` is the latest minute that was judged. The end of the running
 * minute is in the future: the present moment is stored instead. As the opening it stays stored.
 */
export function toStoredEpisode(
  {
    episode,
    closedAt,
    memberOf,
    addresses,
    mainSenders,
    gradedBy,
  }: Pick<StoredEpisode, "memberOf" | "addresses" | "mainSenders" | "gradedBy"> & {
    /** The end of the minute that closed the episode; null while it is open. */
    readonly closedAt: number | null;
    readonly episode: Episode;
  },
  { lastTested, row, nowMs }: { lastTested: number; row: StoredEpisode | undefined; nowMs: number },
): StoredEpisode {
  const { threshold, score, peak, severity, kind } = episode;
  const toPast = (minute: number, before?: Date) => {
    if (minute * MINUTE_MS <= nowMs) return toDate(minute);
    return before !== undefined && toMinute(before) === minute ? before : new Date(nowMs);
  };
  return {
    openedAt: row?.openedAt ?? toPast(episode.openedAt),
    closedAt: closedAt === null ? null : toDate(closedAt),
    lastActiveAt: toPast(episode.lastActiveAt, row?.lastActiveAt),
    // A second wave closes a spike at an earlier minute than those that it was judged for.
    judgedThrough: toDate(
      Math.max(closedAt ?? lastTested + 1, row === undefined ? 0 : toMinute(row.judgedThrough)),
    ),
    baseline: episode.usual,
    windowCount: episode.count,
    windowMinutes: episode.windowMinutes,
    memberOf,
    addresses,
    mainSenders,
    gradedBy,
    threshold,
    score,
    peak,
    severity,
    kind,
  };
}

/** Returns whether the row already stores the episode in this state. */
export function isSameEpisode(row: StoredEpisode, next: StoredEpisode): boolean {
  return !isNews(row, next) && row.judgedThrough.getTime() === next.judgedThrough.getTime();
}

/** Returns whether the new state differs from the row in more than the last judged minute. */
export function isNews<Row extends { readonly judgedThrough: Date }>(row: Row, next: Partial<Row>): boolean {
  return Object.entries(next).some(
    ([name, value]) => name !== "judgedThrough" && !isDeepStrictEqual(row[name as keyof Row], value),
  );
}
