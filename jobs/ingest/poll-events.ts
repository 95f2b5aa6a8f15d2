import { z } from "zod";
import type { NewestRecords } from "#archive/rules/records/find-records.ts";
import { readContested } from "#db/ingest/revise-events.ts";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { readCoveredHours } from "#db/proof/covered-hours.ts";
import { advanceSearch, readKeptMs } from "#db/proof/horizons.ts";
import { readKnownSince } from "#db/proof/hour-contents.ts";
import { isRising, noteRising } from "#db/proof/platform-health.ts";
import { looksRising } from "#detection/rules/sources/judge-sources.ts";
import { type KnownRows, RISING_FRESH_MS, rememberRows } from "#ingest/rules/plan-pass.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { KNOWN_EVENTS } from "#proof/rules/compare-counts.ts";
import { isClosingSearch, planClosingSearch } from "#proof/rules/plan-comparison.ts";
import { planSearch, type SearchedHour, type SearchSpan } from "#proof/rules/plan-search.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { createSearchWatch, judgeRoute } from "../proof/judge-route.ts";
import { type CopiedPages, type CopiedSearch, type CopySearchDeps, copySearch } from "./copy-search.ts";
import {
  type NewestMinutes,
  pollNewest,
  type ResolveEventsDeps,
  resolveEvents,
  WHOLE_POLL_MS,
} from "./poll-newest.ts";

/** How long a successor waits for the lease of a killed runner. The fence, not the lease, separates the two. */
const LEASE_TTL_MS = 15_000;

export interface PollEventsDeps
  extends ResolveEventsDeps,
    Pick<JobContext, "log" | "overlapMs" | "settleMs"> {
  /** Gets the rows of the newest minutes. Left out: verdicts wait for stored records. */
  readonly newestRecords?: Pick<NewestRecords, "keep">;
  /** Half a period. The newest minutes are read again when the last read is older than this. */
  readonly freshMs: number;
  /** The newest minutes of zones, as this process has last searched them. */
  readonly minutes: Map<number, NewestMinutes>;
}

export function pollLeaseName(zoneId: number): string {
  return `poll-events.${zoneId}`;
}

/**
 * Updates one zone. About every half a minute it gets a whole poll, and between two of them only its newest minutes are
 * searched. A whole poll is flat searches: the newest minutes first, then every hour of the last 72 that was never
 * searched, then every settled unsealed hour once more from end to end. Of each kind the hour that expires first
 * comes first. The hour's cursor moves in the transaction of the last page of a span, so a killed span is read again.
 * Every page may be stored twice.
 */
export function createPollEventsJob(given: Omit<PollEventsDeps, "searchedAt" | "minutes">): AnyJob {
  const deps: PollEventsDeps = { ...given, searchedAt: new Map(), minutes: new Map() };
  return defineJob({
    name: "poll-events",
    queue: "ingest",
    payload: z.strictObject({ zoneId: z.int() }),
    attempts: 3,
    timeoutMs: 600_000,
    run: ({ zoneId }, signal) => pollEvents(deps, zoneId, signal),
  });
}

async function pollEvents(deps: PollEventsDeps, zoneId: number, signal: AbortSignal) {
  const { minutes } = deps;
  const lease = { name: pollLeaseName(zoneId), ttlMs: LEASE_TTL_MS };
  const onNews = (events: readonly WafEvent[]) => noteRise(deps, zoneId, events);
  const polled = await pollNewest({ ...deps, onNews }, { zoneId, lease, minutes }, signal);
  if (polled !== null) return polled.why;
  const hadShortPolls = minutes.delete(zoneId);
  const result = await holdLease(deps.database, lease, (taken) =>
    pollUntilCurrent(deps, { zoneId, lease: taken, hadShortPolls }, AbortSignal.any([signal, taken.lost])),
  );
  return result === null ? LEASE_TAKEN : undefined;
}

interface Poll {
  readonly zoneId: number;
  readonly lease: OwnedLease;
  /** Whether short polls, which have no overlap, may have moved the cursor since the last whole poll. */
  readonly hadShortPolls: boolean;
}

/**
 * Polls until the zone is current. An hour whose search fails or is held back does not stop the later ones. Two
 * failures in a row end the run, and so does an answer about the newest minutes that is held back.
 */
async function pollUntilCurrent(deps: PollEventsDeps, poll: Poll, signal: AbortSignal): Promise<void> {
  const { database, clock, log } = deps;
  const { zoneId } = poll;
  const polledAt = clock();
  let newest: NewestMinutes | null = null;
  let hasNews = false;
  const failures: unknown[] = [];
  // How far this run has searched each hour. An hour that is left to the next run, because its search failed or
  // contradicted itself, counts as searched.
  const searched = new Map<number, number>();
  /** Hours that this run has searched from end to end. */
  const closed = new Set<number>();
  let failuresInARow = 0;
  // The first search of a run covers all minutes since the last run. A longer run returns to the newest minutes once per
  // period. Half a period, the age at which a run begins, would be more requests than the backfills of many zones leave
  // for each other.
  const longMs = 2 * deps.freshMs;
  let { freshMs } = deps;
  if (await isRising(database.db, zoneId, clock())) freshMs = Math.min(freshMs, RISING_FRESH_MS);
  const askedMs = freshMs;
  // Late events are searched for as often as with polls every half a minute.
  const overlapEveryMs = Math.max(longMs, WHOLE_POLL_MS);
  // A poll after short polls searches what they have left out: the overlap before the last whole poll.
  let [periodMs, overlapMs] = [overlapEveryMs, deps.overlapMs];
  if (poll.hadShortPolls) [periodMs, overlapMs] = [1, overlapMs + WHOLE_POLL_MS];
  const keptMs = await readKeptMs(database.db, zoneId, clock());
  const readHours = (now: number) =>
    readCoveredHours(database.db, zoneId, { fromMs: startOfHour(horizonAt(now, keptMs)), toMs: now });
  let hours = await readHours(clock());
  const contested = await readContested(database.db, zoneId, horizonAt(clock(), keptMs));
  // Whether hours were searched for the first time since they were read. Closing searches depend on what that has found.
  let isOutdated = false;
  while (!signal.aborted) {
    const now = clock();
    const open = planSearch(now, [...hours, ...toSearched(searched)], {
      freshMs,
      periodMs,
      overlapMs,
      keptMs,
    });
    freshMs = longMs;
    [periodMs, overlapMs] = [overlapEveryMs, deps.overlapMs];
    if (open === null && isOutdated) {
      hours = await readHours(now);
      isOutdated = false;
    }
    // Once per run: an hour whose closing search finds something is left to the next run, however the clock moves.
    const untried = hours.filter(({ startsAt }) => searched.get(startsAt) !== LATER && !closed.has(startsAt));
    const policy = { ...deps, keptMs, contested };
    const span =
      open ?? planClosingSearch(now, untried, policy) ?? planPartSearch(deps, poll, untried, policy);
    if (span === null) break;
    const { to } = span;
    // Most runs search the newest minutes only. An hour that a late event has reopened meanwhile waits for the next run.
    if (open !== null && span.hour !== startOfHour(now)) isOutdated = true;
    if (open === null) closed.add(span.hour);
    try {
      const copied = await searchSpan(deps, poll, span, signal);
      const { startedAt: atMs, pages, inserted, contradiction, known } = copied;
      const isTrusted = contradiction === null && !copied.wasSuspect;
      if (span.hour === startOfHour(now))
        newest =
          isTrusted && known !== null
            ? { ...known, polledAt, hour: span.hour, through: to, freshMs: askedMs }
            : null;
      const { from } = span;
      log.debug({ zoneId, from: new Date(from), to: new Date(to), pages, inserted }, "span searched");
      failuresInARow = 0;
      hasNews ||= inserted > 0;
      // If the search contradicts itself, the cursor has not moved, so the next run searches the span again.
      searched.set(span.hour, contradiction === null ? to : LATER);
      if (contradiction !== null || (copied.wasSuspect && copied.isRecognised))
        await judgeRoute(deps, { zoneId, route: "search", atMs, contradiction });
      if (contradiction?.isWhole === true && span.hour === startOfHour(now)) break;
    } catch (thrown) {
      if (signal.aborted) return;
      failures.push(thrown);
      searched.set(span.hour, LATER);
      const isRefused = thrown instanceof EdgeError && thrown.disposition === "wait";
      if (++failuresInARow === 2 || isRefused) break;
    }
  }
  if (failures.length > 0) throw failures[0];
  // In a zone without known events the next poll reads which of the new ones every answer has to show.
  if (newest !== null && (newest.knownSince !== null || !hasNews)) deps.minutes.set(zoneId, newest);
  if (!signal.aborted) await resolveEvents(deps, { ...poll, hours: advance(hours, searched) }, signal);
}

/** An undecided hour that the platform has begun to forget is read again after this, because it may have shown too little. */
const PART_MS = 10 * 60_000;

/** Returns the rest of the undecided hour that the platform has begun to forget, if it was not read for ten minutes. */
function planPartSearch(
  { clock, searchedAt }: PollEventsDeps,
  { zoneId }: Poll,
  hours: readonly CoveredHour[],
  { keptMs }: { readonly keptMs: number },
): SearchSpan | null {
  const now = clock();
  const from = horizonAt(now, keptMs);
  const hour = startOfHour(from);
  const key = `${zoneId}:${hour}`;
  const isOpen = hours.some(({ startsAt, state }) => startsAt === hour && state === "open");
  const last = searchedAt.get(key);
  if (!isOpen || hour === from || (last !== undefined && now - last < PART_MS)) return null;
  searchedAt.set(key, now);
  return last === undefined ? null : { hour, from, to: hour + HOUR_MS, isFirst: false };
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

interface SearchedSpan extends CopiedPages {
  /** Start of the search, epoch ms. */
  readonly startedAt: number;
  /** The rows of the newest minutes; null for another span, and if they are too many to be remembered. */
  readonly known: Pick<NewestMinutes, "rows" | "knownSince"> | null;
}

/** How far the search of the newest minutes reaches back to show events that are known. */
const REACH_BACK_MS = 24 * HOUR_MS;

/**
 * Searches a span. The hour's cursor moves with every part. The closing search counts when its last part is stored. The
 * search of the newest minutes reaches back to a few known events, so that another zone's events are noticed. `conclude` runs
 * in the same transactions.
 */
export async function searchSpan(
  deps: CopySearchDeps & Pick<PollEventsDeps, "settleMs" | "newestRecords">,
  { zoneId, lease, conclude: concludeMore }: Pick<CopiedSearch, "zoneId" | "lease" | "conclude">,
  span: SearchSpan,
  signal: AbortSignal,
): Promise<SearchedSpan> {
  const startedAt = deps.clock();
  const isClosing = isClosingSearch(span, startedAt, deps.settleMs);
  const { hour: startsAt, to, isFirst: expectNew } = span;
  const isNewest = startsAt === startOfHour(startedAt);
  const known = { fromMs: to - REACH_BACK_MS, toMs: to, events: KNOWN_EVENTS };
  const knownSince = isNewest ? await readKnownSince(deps.database.db, zoneId, known) : null;
  const from = Math.min(span.from, knownSince ?? span.from);
  const watch = createSearchWatch();
  const rows: KnownRows = new Map();
  let isRemembered = isNewest;
  const found: WafEvent[] = [];
  const conclude: CopiedSearch["conclude"] = async (tx, through) => {
    const closingSearchAt = isClosing && through === to ? startedAt : null;
    const looks = await advanceSearch(tx, zoneId, { startsAt, searchedThrough: through, closingSearchAt });
    if (closingSearchAt !== null) await watch.recordLook(tx, zoneId, { startsAt, at: startedAt, looks });
    await concludeMore?.(tx, through);
  };
  const copied = await copySearch(
    deps,
    {
      zoneId,
      lease,
      from,
      to,
      expectNew: expectNew && knownSince === null,
      mustShow: isNewest,
      onEvents: (events, pages) => {
        watch.add(events, pages);
        if (isNewest) found.push(...events);
      },
      onStored: (some, raws) => {
        if (isNewest) deps.newestRecords?.keep(zoneId, some, raws);
        isRemembered = isRemembered && rememberRows(rows, some, raws);
      },
      conclude,
    },
    signal,
  );
  if (copied.inserted > 0) await noteRise(deps, zoneId, found);
  return { ...copied, startedAt, known: isRemembered ? { rows, knownSince } : null };
}

/** Has the zone polled more often if its newest events look like an attack. */
async function noteRise(
  { database, clock }: Pick<PollEventsDeps, "database" | "clock">,
  zoneId: number,
  events: readonly WafEvent[],
): Promise<void> {
  const now = clock();
  if (looksRising(events, now)) await noteRising(database.db, [zoneId], now);
}
