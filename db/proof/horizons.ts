/** How far the platform shows events, and how far they have been searched. */
import { and, eq, gte, lt, sql } from "drizzle-orm";
import type { HourLooks } from "#model/covered-hour.ts";
import { type KnownHorizon, keptFor, WHOLE_HORIZON } from "#model/horizon.ts";
import type { ProvenDay } from "#model/zones.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows, platformHealth } from "../schema/coverage.ts";
import { wafEvents } from "../schema/events.ts";

/** Returns how long the platform keeps the zone's events, as it is known. */
export async function readHorizon(db: Queryable, zoneId: number): Promise<KnownHorizon> {
  const { keptMs, keptSince, keptBeforeMs: beforeMs } = platformHealth;
  const [row] = await db
    .select({ keptMs, keptSince, beforeMs })
    .from(platformHealth)
    .where(eq(platformHealth.zoneId, zoneId));
  if (row === undefined) return WHOLE_HORIZON;
  return { keptMs: row.keptMs, since: row.keptSince?.getTime() ?? null, beforeMs: row.beforeMs };
}

/** Returns how long the platform keeps the zone's events, as `keptFor` does; ms. */
export async function readKeptMs(
  db: Queryable,
  zoneId: number,
  now: number,
  forMs?: number,
): Promise<number> {
  return keptFor(await readHorizon(db, zoneId), now, forMs);
}

export async function writeHorizon(
  db: Queryable,
  zoneId: number,
  { keptMs, since, beforeMs }: KnownHorizon,
  atMs: number,
): Promise<void> {
  const known = { keptMs, keptSince: since === null ? null : new Date(since), keptBeforeMs: beforeMs };
  await db
    .insert(platformHealth)
    .values({ zoneId, watchedSince: new Date(atMs), ...known })
    .onConflictDoUpdate({ target: platformHealth.zoneId, set: known });
}

/** Returns the number of stored events of [fromMs, toMs) and the time of the newest of them, epoch ms. */
export async function readGone(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<{ events: number; newestAt: number | null }> {
  const { zoneId: zone, occurredAt } = wafEvents;
  const [row] = await db
    .select({
      events: sql<number>`count(*)::integer`,
      newestAt: epochMs(sql<string | null>`max(${occurredAt})`),
    })
    .from(wafEvents)
    .where(and(eq(zone, zoneId), gte(occurredAt, new Date(fromMs)), lt(occurredAt, new Date(toMs))));
  return row ?? { events: 0, newestAt: null };
}

/** Returns the days of the zone that were proven anew because of the platform's metrics, by `yyyy-MM-dd`. */
export async function readProvenDays(
  db: Queryable,
  zoneId: number,
): Promise<Readonly<Record<string, ProvenDay>>> {
  const { provenDays } = platformHealth;
  const [row] = await db.select({ provenDays }).from(platformHealth).where(eq(platformHealth.zoneId, zoneId));
  return row?.provenDays ?? {};
}

export async function writeProvenDays(
  db: Queryable,
  zoneId: number,
  provenDays: Readonly<Record<string, ProvenDay>>,
  atMs: number,
): Promise<void> {
  await db
    .insert(platformHealth)
    .values({ zoneId, watchedSince: new Date(atMs), provenDays })
    .onConflictDoUpdate({ target: platformHealth.zoneId, set: { provenDays } });
}

/** How far the search route has covered one hour of a zone; times in epoch ms. */
interface SearchedHour {
  readonly startsAt: number;
  readonly searchedThrough: number | null;
}

/** Returns the records of the hours that begin in [fromMs, toMs), oldest first. An hour without a row has not begun. */
export async function readSearchedHours(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<SearchedHour[]> {
  const { zoneId: zone, startsAt, searchedThrough } = coverageWindows;
  return db
    .select({ startsAt: epochMs(startsAt), searchedThrough: epochMs(searchedThrough) })
    .from(coverageWindows)
    .where(and(eq(zone, zoneId), gte(startsAt, new Date(fromMs)), lt(startsAt, new Date(toMs))))
    .orderBy(startsAt);
}

/** How far a search has come; times in epoch ms. */
interface SearchAdvance {
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
