import { z } from "zod";
import type { Database } from "../db/client.ts";
import { toEventRows } from "../db/event-rows.ts";
import { type HeldLease, holdLease } from "../db/hold-lease.ts";
import type { PartitionKeeper } from "../db/partition-keeper.ts";
import { advanceSearch, readSearchedHours } from "../db/queries/search-coverage.ts";
import { storePage } from "../db/queries/store-page.ts";
import type { Clock } from "../src/clock.ts";
import { horizonAt, startOfHour } from "../src/coverage/horizon.ts";
import { planSearch, type SearchedHour, type SearchSpan } from "../src/coverage/plan-search.ts";
import { splitSpan } from "../src/coverage/split-span.ts";
import { EventRow } from "../src/edge/contract/event-logs-search.ts";
import type { EdgeClient } from "../src/edge/edge-client.ts";
import { EdgeError } from "../src/edge/edge-error.ts";
import type { SearchEventLogsResult } from "../src/edge/search-event-logs.ts";
import { searchPages } from "../src/edge/search-pages.ts";
import { acceptedAt } from "../src/ingest/accepted-times.ts";
import { countEvents } from "../src/ingest/count-events.ts";
import { listDays } from "../src/ingest/digest-list-page.ts";
import { entryBytes } from "../src/ingest/entry-bytes.ts";
import type { IngestObserver } from "../src/ingest/ingest-observer.ts";
import { preparePage } from "../src/ingest/prepare-page.ts";
import { toSearchEvent } from "../src/ingest/to-search-event.ts";
import type { Log } from "../src/log.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";
import { readAhead } from "../src/read-ahead.ts";

/** What a killed runner keeps its successor waiting; the fence, not the lease, keeps the two apart. */
const LEASE_TTL_MS = 15_000;
/** The most the platform gives; platform API spec 2.3. */
const PAGE_SIZE = 500;

export interface PollEventsDeps {
  readonly database: Database;
  readonly partitions: PartitionKeeper;
  readonly edge: Pick<EdgeClient, "searchEventLogs">;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: IngestObserver;
  /** The live edge is read again when it is older than this. */
  readonly freshMs: number;
  /** What is read again before the point already reached, for late events. */
  readonly overlapMs: number;
  /** Told after each page that changed something. */
  readonly afterPage: () => unknown;
}

export function pollLeaseName(zoneId: number): string {
  return `poll-events.${zoneId}`;
}

/**
 * Brings one zone up to date by flat searches: the newest minutes first, then every hour of the last 72 that was never
 * searched, the one that expires first in front. The hour's cursor moves in the transaction of the last page of a
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
  let failuresInARow = 0;
  while (!signal.aborted) {
    const now = clock();
    const range = { fromMs: startOfHour(horizonAt(now)), toMs: now };
    const hours = await readSearchedHours(database.db, poll.zoneId, range);
    const span = planSearch(now, [...hours, ...asSearched(failed.keys())], deps);
    if (span === null) break;
    try {
      const stored = await searchSpan(deps, poll, { ...span, isWhole: true }, signal);
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

interface Part extends SearchSpan {
  /** Not yet split. */
  readonly isWhole: boolean;
}

async function searchSpan(
  deps: PollEventsDeps,
  poll: Poll,
  part: Part,
  signal: AbortSignal,
): Promise<{ pages: number; inserted: number }> {
  const request = { from: part.from, to: part.to, pageSize: PAGE_SIZE };
  const params = { shieldZoneId: poll.zoneId, request };
  let pages = 0;
  let inserted = 0;
  let expectNew = part.isFirst;
  let parts: ReturnType<typeof splitSpan> = null;
  for await (const result of readAhead(searchPages(deps.edge.searchEventLogs, params, signal))) {
    parts = pages === 0 && part.isWhole ? splitSpan(part.from, part.to, result.page.total) : null;
    // The pages end first: work begun beside them could fail while nobody listens.
    if (parts !== null) break;
    const isLast = pages + 1 >= result.page.totalPages || result.page.rows.length === 0;
    const stored = await storeSearchPage(deps, poll, { result, part, expectNew, isLast });
    expectNew = stored.events > 0 && stored.inserted === stored.events;
    inserted += stored.inserted;
    pages++;
  }
  return parts === null ? { pages, inserted } : searchParts(deps, poll, part, parts, signal);
}

async function searchParts(
  deps: PollEventsDeps,
  poll: Poll,
  whole: SearchSpan,
  parts: readonly { from: number; to: number }[],
  signal: AbortSignal,
): Promise<{ pages: number; inserted: number }> {
  const sum = { pages: 1, inserted: 0 };
  for (const part of parts) {
    signal.throwIfAborted();
    const { pages, inserted } = await searchSpan(deps, poll, { ...whole, ...part, isWhole: false }, signal);
    sum.pages += pages;
    sum.inserted += inserted;
  }
  return sum;
}

interface SearchedPage {
  readonly result: SearchEventLogsResult;
  readonly part: Part;
  readonly expectNew: boolean;
  readonly isLast: boolean;
}

async function storeSearchPage(
  deps: PollEventsDeps,
  { zoneId, lease }: Poll,
  { result, part, expectNew, isLast }: SearchedPage,
): Promise<{ events: number; inserted: number }> {
  const { database, partitions, clock, observer } = deps;
  const { page, body } = result;
  const readEntry = (index: number) => page.rows[index];
  const opened = { records: entryBytes(body, "rows", page.rows), readPlainEntry: readEntry, readEntry };
  const { events, quarantined, firstAt, lastAt } = preparePage(opened, {
    route: "search",
    schema: EventRow,
    toEvent: toSearchEvent,
    day: null,
    accepted: acceptedAt(clock()),
  });
  const rows = toEventRows(zoneId, events);
  const newEvents = { rows, size: events.length, firstAt, lastAt, counts: countEvents(events) };
  const newPage = { zoneId, lease, events: newEvents, expectNew, quarantined, rawBlocks: [] };
  const { stored } = await partitions.withDays(listDays(events), () =>
    storePage(database, newPage, async (tx) => {
      if (isLast) await advanceSearch(tx, zoneId, { startsAt: part.hour, searchedThrough: part.to });
    }),
  );
  const entries = page.rows.length;
  observer.pageStored({ route: "search", zoneId, entries, bytes: body.length, ...stored });
  if (stored.inserted + stored.filled > 0) deps.afterPage();
  return { events: events.length, inserted: stored.inserted };
}
