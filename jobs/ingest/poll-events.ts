import { z } from "zod";
import type { Queryable } from "../../db/client.ts";
import { readCoveredHours } from "../../db/coverage/covered-hours.ts";
import { advanceSearch } from "../../db/coverage/searched-hours.ts";
import { readSuspicion } from "../../db/coverage/zone-suspicions.ts";
import { type HeldLease, holdLease } from "../../db/postgres/hold-lease.ts";
import { AGREE_LONG_MS } from "../../src/coverage/hour-proof.ts";
import { isClosingSearch, planClosingSearch } from "../../src/coverage/plan-closing-search.ts";
import { planSearch, type SearchedHour, type SearchSpan } from "../../src/coverage/plan-search.ts";
import { EdgeError } from "../../src/edge/edge-error.ts";
import type { Log } from "../../src/lib/log.ts";
import type { CoveredHour } from "../../src/model/covered-hour.ts";
import { horizonAt, startOfHour } from "../../src/model/horizon.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";
import { isRouteSuspect, judgeRoute } from "../coverage/judge-route.ts";
import { createSearchWatch } from "../coverage/watch-search.ts";
import { type CopiedPages, copySearch } from "./copy-search.ts";
import { type ResolveEventsDeps, resolveEvents } from "./resolve-events.ts";

/** How long a successor waits for the lease of a killed runner. The fence, not the lease, separates the two. */
const LEASE_TTL_MS = 15_000;

export interface PollEventsDeps extends ResolveEventsDeps {
  readonly log: Log;
  /** Half a period. The newest minutes are read again when the last read is older than this. */
  readonly freshMs: number;
  /** Length of the time before the last read that is read again, for late events. */
  readonly overlapMs: number;
  /** How long after its time an event may still appear. */
  readonly settleMs: number;
}

export function pollLeaseName(zoneId: number): string {
  return `poll-events.${zoneId}`;
}

/**
 * Updates one zone by flat searches: the newest minutes first, then every hour of the last 72 that was never
 * searched, then every settled unsealed hour once more from end to end. Of each kind the hour that expires first
 * comes first. The hour's cursor moves in the transaction of the last page of a span, so a killed span is read again.
 * Every page may be stored twice.
 */
export function createPollEventsJob(given: Omit<PollEventsDeps, "resolvedAt">): AnyJob {
  const deps: PollEventsDeps = { ...given, resolvedAt: new Map() };
  return defineJob({
    name: "poll-events",
    queue: "ingest",
    payload: z.strictObject({ zoneId: z.int() }),
    attempts: 3,
    timeoutMs: 600_000,
    run: ({ zoneId }, signal) => pollEvents(deps, zoneId, signal),
  });
}

async function pollEvents(deps: PollEventsDeps, zoneId: number, signal: AbortSignal): Promise<void> {
  await holdLease(deps.database, { name: pollLeaseName(zoneId), ttlMs: LEASE_TTL_MS }, (lease) =>
    pollUntilCurrent(deps, { zoneId, lease }, AbortSignal.any([signal, lease.lost])),
  );
}

interface Poll {
  readonly zoneId: number;
  readonly lease: HeldLease;
}

/**
 * Polls until the zone is current. A failed search of an hour does not stop the later ones; two failures in a row end
 * the run.
 */
async function pollUntilCurrent(deps: PollEventsDeps, poll: Poll, signal: AbortSignal): Promise<void> {
  const { database, clock, log } = deps;
  const { zoneId } = poll;
  const failures: unknown[] = [];
  // How far this run has searched each hour. An hour that is left to the next run, because its search failed or
  // contradicted earlier looks, counts as searched.
  const searched = new Map<number, number>();
  const closed = new Set<number>();
  let failuresInARow = 0;
  // A long run reads the newest minutes again after a whole period, so that the backfills of many zones leave requests
  // for each other.
  let freshMs = deps.freshMs;
  const readHours = (now: number) =>
    readCoveredHours(database.db, zoneId, { fromMs: startOfHour(horizonAt(now)), toMs: now });
  let hours = await readHours(clock());
  // Whether hours were searched for the first time since they were read. Closing searches depend on what that has found.
  let isOutdated = false;
  const isSuspect = await isRouteSuspect(database, zoneId, "search");
  while (!signal.aborted) {
    const now = clock();
    const open = planSearch(now, [...hours, ...toSearched(searched)], { ...deps, freshMs });
    freshMs = 2 * deps.freshMs;
    if (open === null && isOutdated) {
      hours = await readHours(now);
      isOutdated = false;
    }
    // Once per run: an hour whose closing search finds something is left to the next run, however the clock moves.
    const untried = hours.filter(({ startsAt }) => searched.get(startsAt) !== LATER && !closed.has(startsAt));
    const span = open ?? planClosingSearch(now, untried, deps);
    if (span === null) break;
    // Most runs search the newest minutes only. An hour that a late event has reopened meanwhile waits for the next run.
    if (open !== null && span.hour !== startOfHour(now)) isOutdated = true;
    if (open === null) closed.add(span.hour);
    try {
      const { startedAt: atMs, pages, inserted, contradiction } = await searchSpan(deps, poll, span, signal);
      const { from, to } = span;
      log.debug({ zoneId, from: new Date(from), to: new Date(to), pages, inserted }, "span searched");
      failuresInARow = 0;
      // If the search contradicts earlier looks, the cursor has not moved, so the next run searches the span again.
      searched.set(span.hour, contradiction === null ? to : LATER);
      if (contradiction !== null || open === null || isSuspect)
        await judgeRoute(deps, { zoneId, route: "search", atMs, contradiction });
    } catch (thrown) {
      if (signal.aborted) return;
      failures.push(thrown);
      searched.set(span.hour, LATER);
      const isRefused = thrown instanceof EdgeError && thrown.disposition === "wait";
      if (++failuresInARow === 2 || isRefused) break;
    }
  }
  if (failures.length > 0) throw failures[0];
  if (!signal.aborted) await resolveEvents(deps, { ...poll, hours: advance(hours, searched) }, signal);
}

const LATER = Number.POSITIVE_INFINITY;

function toSearched(hours: ReadonlyMap<number, number>): SearchedHour[] {
  return Array.from(hours, ([startsAt, searchedThrough]) => ({ startsAt, searchedThrough }));
}

function advance(hours: readonly CoveredHour[], searched: ReadonlyMap<number, number>): CoveredHour[] {
  return hours.map((hour) => {
    const through = searched.get(hour.startsAt) ?? LATER;
    return through === LATER ? hour : { ...hour, searchedThrough: through };
  });
}

/**
 * Returns whether the search has not shown less than before for an hour yet. After that the cursor moves on even so: an
 * event that the platform has dropped never returns, and new events must not wait for it. Nothing is lost by that: the
 * zone stays suspect, and the closing search reads the hour again.
 */
async function isFreshlySuspect(tx: Queryable, zoneId: number): Promise<boolean> {
  const suspicion = await readSuspicion(tx, zoneId, "search");
  if (suspicion === null || suspicion.clearedAt !== null) return true;
  return suspicion.lastSeenAt - suspicion.since < AGREE_LONG_MS;
}

interface SearchedSpan extends CopiedPages {
  /** Start of the search, epoch ms. */
  readonly startedAt: number;
}

/**
 * Searches a span. The hour's cursor moves with every part. The closing search counts when its last part is stored.
 * If the search shows less of the time before the cursor than earlier searches, the cursor stays for an hour.
 */
async function searchSpan(
  deps: PollEventsDeps,
  { zoneId, lease }: Poll,
  span: SearchSpan,
  signal: AbortSignal,
): Promise<SearchedSpan> {
  const startedAt = deps.clock();
  const isClosing = isClosingSearch(span, startedAt, deps.settleMs);
  const { hour: startsAt, from, to, isFirst: expectNew } = span;
  // A closing search may lack events that the platform has dropped. Its look records that.
  const seenThrough = expectNew || isClosing ? from : Math.min(from + deps.overlapMs, to);
  const watch = createSearchWatch();
  let shortfall: string | null = null;
  const copied = await copySearch(
    deps,
    {
      zoneId,
      lease,
      from,
      to,
      expectNew,
      onEvents: watch.add,
      conclude: async (tx, through) => {
        shortfall = await watch.findShortfall(tx, zoneId, { from, to: Math.min(seenThrough, through) });
        if (shortfall !== null && (await isFreshlySuspect(tx, zoneId))) return;
        const closingSearchAt = isClosing && through === to ? startedAt : null;
        const looks = await advanceSearch(tx, zoneId, {
          startsAt,
          searchedThrough: through,
          closingSearchAt,
        });
        if (closingSearchAt !== null) await watch.recordLook(tx, zoneId, { startsAt, at: startedAt, looks });
      },
    },
    signal,
  );
  return { ...copied, startedAt, contradiction: copied.contradiction ?? shortfall };
}
