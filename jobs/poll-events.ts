import { z } from "zod";
import { type HeldLease, holdLease } from "../db/hold-lease.ts";
import { readCoveredHours } from "../db/queries/covered-hours.ts";
import { advanceSearch } from "../db/queries/search-coverage.ts";
import { horizonAt, startOfHour } from "../src/coverage/horizon.ts";
import { isClosingSearch, planClosingSearch } from "../src/coverage/plan-closing-search.ts";
import { planSearch, type SearchedHour, type SearchSpan } from "../src/coverage/plan-search.ts";
import { EdgeError } from "../src/edge/edge-error.ts";
import type { Log } from "../src/log.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";
import { type CopiedPages, type CopySearchDeps, copySearch } from "./copy-search.ts";

const LEASE_TTL_MS = 60_000;

export interface PollEventsDeps extends CopySearchDeps {
  readonly log: Log;
  /** The live edge is read again when it is older than this. */
  readonly freshMs: number;
  /** What is read again before the point already reached, for late events. */
  readonly overlapMs: number;
  /** Until when an event may still appear after its time. */
  readonly settleMs: number;
}

export function pollLeaseName(zoneId: number): string {
  return `poll-events.${zoneId}`;
}

/**
 * Brings one zone up to date by flat searches: the newest minutes first, then every hour of the last 72 that was never
 * searched, then every unsealed one that has settled once more from end to end, each time the one that expires first in
 * front. The hour's cursor moves in the transaction of the last page of a
 * span, so a killed span is read again; every page may be stored twice.
 */
export function createPollEventsJob(deps: PollEventsDeps): AnyJob {
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

/** An hour that cannot be searched must not keep those behind it from being copied; two in a row end the run. */
async function pollUntilCurrent(deps: PollEventsDeps, poll: Poll, signal: AbortSignal): Promise<void> {
  const { database, clock, log } = deps;
  const failed = new Map<number, unknown>();
  const closed = new Set<number>();
  let failuresInARow = 0;
  while (!signal.aborted) {
    const now = clock();
    const range = { fromMs: startOfHour(horizonAt(now)), toMs: now };
    const hours = await readCoveredHours(database.db, poll.zoneId, range);
    // Once per run: an hour whose closing search finds something is left to the next, however the clock runs.
    const untried = hours.filter(({ startsAt }) => !failed.has(startsAt) && !closed.has(startsAt));
    const open = planSearch(now, [...hours, ...asSearched(failed.keys())], deps);
    const span = open ?? planClosingSearch(now, untried, deps);
    if (span === null) break;
    if (open === null) closed.add(span.hour);
    try {
      const stored = await searchSpan(deps, poll, span, signal);
      const { from, to } = span;
      const facts = { zoneId: poll.zoneId, from: new Date(from), to: new Date(to), ...stored };
      log.debug(facts, "span searched");
      failuresInARow = 0;
    } catch (thrown) {
      if (signal.aborted) return;
      failed.set(span.hour, thrown);
      const isRefused = thrown instanceof EdgeError && thrown.disposition === "wait";
      if (++failuresInARow === 2 || isRefused) break;
    }
  }
  const [first] = failed.values();
  if (failed.size > 0) throw first;
}

function asSearched(hours: Iterable<number>): SearchedHour[] {
  return Array.from(hours, (startsAt) => ({ startsAt, searchedThrough: Number.POSITIVE_INFINITY }));
}

/** The hour's cursor moves with every part, its closing search counts when the last one is stored. */
function searchSpan(
  deps: PollEventsDeps,
  { zoneId, lease }: Poll,
  span: SearchSpan,
  signal: AbortSignal,
): Promise<CopiedPages> {
  const startedAt = deps.clock();
  const isClosing = isClosingSearch(span, startedAt, deps.settleMs);
  const { hour: startsAt, from, to, isFirst: expectNew } = span;
  const search = { zoneId, lease, from, to, expectNew };
  return copySearch(
    deps,
    {
      ...search,
      conclude: (tx, through) => {
        const closingSearchAt = isClosing && through === to ? startedAt : null;
        return advanceSearch(tx, zoneId, { startsAt, searchedThrough: through, closingSearchAt });
      },
    },
    signal,
  );
}
