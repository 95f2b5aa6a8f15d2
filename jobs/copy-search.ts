import type { Database, Queryable } from "../db/client.ts";
import { toEventRows } from "../db/event-rows.ts";
import type { HeldLease } from "../db/hold-lease.ts";
import type { PartitionKeeper } from "../db/partition-keeper.ts";
import { storePage } from "../db/queries/store-page.ts";
import type { Clock } from "../src/clock.ts";
import { splitSpan } from "../src/coverage/split-span.ts";
import { type EventLogsFilter, EventRow } from "../src/edge/contract/event-logs-search.ts";
import type { EdgeClient } from "../src/edge/edge-client.ts";
import type { SearchEventLogsResult } from "../src/edge/search-event-logs.ts";
import { searchPages } from "../src/edge/search-pages.ts";
import { acceptedAt } from "../src/ingest/accepted-times.ts";
import { countEvents } from "../src/ingest/count-events.ts";
import { listDays } from "../src/ingest/digest-list-page.ts";
import { entryBytes } from "../src/ingest/entry-bytes.ts";
import type { IngestObserver } from "../src/ingest/ingest-observer.ts";
import { preparePage } from "../src/ingest/prepare-page.ts";
import { toSearchEvent } from "../src/ingest/to-search-event.ts";
import { readAhead } from "../src/read-ahead.ts";

/** The most the platform gives; platform API spec 2.3. */
const PAGE_SIZE = 500;

export interface CopySearchDeps {
  readonly database: Database;
  readonly partitions: PartitionKeeper;
  readonly edge: Pick<EdgeClient, "searchEventLogs">;
  readonly clock: Clock;
  readonly observer: IngestObserver;
  /** Told after each page that changed something. */
  readonly afterPage: () => unknown;
}

/** What to copy; times in epoch ms, `to` in the past: its pages must not shift while they are read. */
export interface CopiedSearch {
  readonly zoneId: number;
  /** Every page asserts its fence. */
  readonly lease: Pick<HeldLease, "name" | "fence">;
  readonly from: number;
  readonly to: number;
  readonly filters?: readonly EventLogsFilter[];
  /** Its events are probably all new. */
  readonly expectNew: boolean;
  /** Runs in the transaction of the last page of each part, when everything before `through` is stored. */
  readonly conclude?: (tx: Queryable, through: number) => Promise<void>;
}

export interface CopiedPages {
  readonly pages: number;
  /** Events nobody had stored before. */
  readonly inserted: number;
}

/**
 * Copies what one flat search shows, page by page, each page one transaction; a span with more events than paging should
 * hold is cut in time. Killed in between, it may be run again from the beginning.
 */
export async function copySearch(
  deps: CopySearchDeps,
  search: CopiedSearch,
  signal: AbortSignal,
): Promise<CopiedPages> {
  const { zoneId, from, to, filters } = search;
  const request = {
    from,
    to,
    pageSize: PAGE_SIZE,
    ...(filters === undefined ? {} : { filters: [...filters] }),
  };
  const params = { shieldZoneId: zoneId, request };
  let pages = 0;
  let inserted = 0;
  let { expectNew } = search;
  let parts: ReturnType<typeof splitSpan> = null;
  for await (const result of readAhead(searchPages(deps.edge.searchEventLogs, params, signal))) {
    parts = pages === 0 ? splitSpan(from, to, result.page.total) : null;
    // The pages end first: work begun beside them could fail while nobody listens.
    if (parts !== null) break;
    const isLast = pages + 1 >= result.page.totalPages || result.page.rows.length === 0;
    const stored = await storeSearchPage(deps, search, { result, expectNew, isLast });
    expectNew = stored.events > 0 && stored.inserted === stored.events;
    inserted += stored.inserted;
    pages++;
  }
  return parts === null ? { pages, inserted } : copyParts(deps, search, parts, signal);
}

async function copyParts(
  deps: CopySearchDeps,
  whole: CopiedSearch,
  parts: readonly { from: number; to: number }[],
  signal: AbortSignal,
): Promise<CopiedPages> {
  const sum = { pages: 1, inserted: 0 };
  for (const part of parts) {
    signal.throwIfAborted();
    const { pages, inserted } = await copySearch(deps, { ...whole, ...part }, signal);
    sum.pages += pages;
    sum.inserted += inserted;
  }
  return sum;
}

interface SearchedPage {
  readonly result: SearchEventLogsResult;
  readonly expectNew: boolean;
  readonly isLast: boolean;
}

async function storeSearchPage(
  { database, partitions, clock, observer, afterPage }: CopySearchDeps,
  { zoneId, lease, to, conclude }: CopiedSearch,
  { result, expectNew, isLast }: SearchedPage,
): Promise<{ events: number; inserted: number }> {
  const { page, body } = result;
  const storedAt = clock();
  const readEntry = (index: number) => page.rows[index];
  const opened = { records: entryBytes(body, "rows", page.rows), readPlainEntry: readEntry, readEntry };
  const { events, quarantined, firstAt, lastAt } = preparePage(opened, {
    route: "search",
    schema: EventRow,
    toEvent: toSearchEvent,
    day: null,
    accepted: acceptedAt(storedAt),
  });
  const rows = toEventRows(zoneId, events);
  const newEvents = { rows, size: events.length, firstAt, lastAt, counts: countEvents(events) };
  const newPage = { zoneId, lease, events: newEvents, expectNew, storedAt, quarantined, rawBlocks: [] };
  const { stored } = await partitions.withDays(listDays(events), () =>
    storePage(database, newPage, async (tx) => {
      if (isLast) await conclude?.(tx, to);
    }),
  );
  const entries = page.rows.length;
  observer.pageStored({ route: "search", zoneId, entries, bytes: body.length, ...stored });
  if (stored.inserted + stored.filled > 0) afterPage();
  return { events: events.length, inserted: stored.inserted };
}
