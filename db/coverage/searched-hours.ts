import { and, eq, gte, lt, sql } from "drizzle-orm";
import type { HourLooks } from "#model/look.ts";
import type { Queryable } from "../client.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";

/** How far the search route has covered one hour of a zone; times in epoch ms. */
export interface SearchedHour {
  readonly startsAt: number;
  readonly searchedThrough: number | null;
}

/** Returns the records of the hours that begin in [fromMs, toMs), oldest first. An hour without a row has not begun. */
export async function readSearchedHours(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<SearchedHour[]> {
  const rows = await db
    .select({ startsAt: coverageWindows.startsAt, searchedThrough: coverageWindows.searchedThrough })
    .from(coverageWindows)
    .where(
      and(
        eq(coverageWindows.zoneId, zoneId),
        gte(coverageWindows.startsAt, new Date(fromMs)),
        lt(coverageWindows.startsAt, new Date(toMs)),
      ),
    )
    .orderBy(coverageWindows.startsAt);
  return rows.map(({ startsAt, searchedThrough }) => ({
    startsAt: startsAt.getTime(),
    searchedThrough: searchedThrough?.getTime() ?? null,
  }));
}

/** How far a search has come; times in epoch ms. */
export interface SearchAdvance {
  readonly startsAt: number;
  readonly searchedThrough: number;
  /** When it began, where it went over the whole settled hour and has reached its end. */
  readonly closingSearchAt?: number | null;
}

/**
 * Moves the hour's search cursor to `searchedThrough`, if it is at `from` or later: then no time before is left out, also if
 * another process has moved it meanwhile. Returns false if it was moved back.
 */
export async function continueSearch(
  db: Queryable,
  zoneId: number,
  { startsAt, from, searchedThrough }: { startsAt: number; from: number; searchedThrough: number },
): Promise<boolean> {
  const to = new Date(searchedThrough);
  const moved = await db
    .update(coverageWindows)
    .set({ searchedThrough: sql`greatest(${coverageWindows.searchedThrough}, ${to})` })
    .where(
      and(
        eq(coverageWindows.zoneId, zoneId),
        eq(coverageWindows.startsAt, new Date(startsAt)),
        gte(coverageWindows.searchedThrough, new Date(from)),
      ),
    );
  return moved.rowCount === 1;
}

/** Moves the hour's search cursor forward, never back. Returns the hour's looks, locked until the commit. */
export async function advanceSearch(
  db: Queryable,
  zoneId: number,
  { startsAt, searchedThrough, closingSearchAt = null }: SearchAdvance,
): Promise<HourLooks> {
  const closedAt = closingSearchAt === null ? null : new Date(closingSearchAt);
  const searched = { searchedThrough: new Date(searchedThrough), closingSearchAt: closedAt };
  const [row] = await db
    .insert(coverageWindows)
    .values({ zoneId, startsAt: new Date(startsAt), ...searched })
    .onConflictDoUpdate({
      target: [coverageWindows.zoneId, coverageWindows.startsAt],
      set: {
        searchedThrough: sql`greatest(${coverageWindows.searchedThrough}, excluded.searched_through)`,
        closingSearchAt: sql`greatest(${coverageWindows.closingSearchAt}, excluded.closing_search_at)`,
      },
    })
    .returning({ looks: coverageWindows.looks });
  return row?.looks ?? {};
}
