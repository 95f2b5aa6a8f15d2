import type { Queryable } from "../../db/client.ts";
import type { StoredPage } from "../../db/ingest/store-page.ts";
import type { HeldLease } from "../../db/postgres/hold-lease.ts";
import { splitSpan } from "../../src/coverage/split-span.ts";
import { type EventLogsFilter, EventRow } from "../../src/edge/contract/event-logs-search.ts";
import type { EdgeClient } from "../../src/edge/edge-client.ts";
import type { SearchEventLogsResult } from "../../src/edge/search-event-logs.ts";
import { searchPages } from "../../src/edge/search-pages.ts";
import { entryBytes } from "../../src/ingest/entry-bytes.ts";
import { toSearchEvent } from "../../src/ingest/to-search-event.ts";
import { readAhead } from "../../src/lib/read-ahead.ts";
import type { WafEvent } from "../../src/model/waf-event.ts";
import { type StoreEntriesDeps, storeEntries } from "./store-entries.ts";

/** Maximum page size of the platform; platform API spec 2.3. */
const PAGE_SIZE = 500;

export interface CopySearchDeps extends StoreEntriesDeps {
  readonly edge: Pick<EdgeClient, "searchEventLogs">;
}

/** The span to copy; times in epoch ms. `to` is in the past, so that the pages do not shift while they are read. */
export interface CopiedSearch {
  readonly zoneId: number;
  /** The transaction of every page asserts the fence of this lease. */
  readonly lease: Pick<HeldLease, "name" | "fence">;
  readonly from: number;
  readonly to: number;
  readonly filters?: readonly EventLogsFilter[];
  /** True if the events are probably all new. */
  readonly expectNew: boolean;
  /** Called once with the events of each page, before they are stored. */
  readonly onEvents?: (events: readonly WafEvent[]) => void;
  /**
   * Runs in the transaction of the last page of each part, when everything before `through` is stored. Not called
   * when the search has contradicted itself.
   */
  readonly conclude?: (tx: Queryable, through: number) => Promise<void>;
  /** Runs in the transaction of every page. */
  readonly onPage?: (tx: Queryable, stored: StoredPage) => Promise<void>;
}

export interface CopiedPages {
  readonly pages: number;
  /** Events that were not stored before. */
  readonly inserted: number;
  /** A sentence why the search cannot have shown everything; null when there is no such sign. */
  readonly contradiction: string | null;
}

/**
 * Copies the results of one flat search, page by page, each page in one transaction. A span with too many events for
 * paging is split in time. A killed copy may be run again from the beginning.
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
  let contradiction: string | null = null;
  let parts: ReturnType<typeof splitSpan> = null;
  for await (const result of readAhead(searchPages(deps.edge.searchEventLogs, params, signal))) {
    parts = pages === 0 ? splitSpan(from, to, result.page.total) : null;
    // The pages end first, because a rejection of work in parallel could otherwise be unhandled.
    if (parts !== null) break;
    const { rows, total, totalPages } = result.page;
    const isLast = pages + 1 >= totalPages || rows.length === 0;
    if (rows.length === 0 && total > pages * PAGE_SIZE)
      contradiction = `A search page is empty although ${total} events are announced.`;
    const isComplete = isLast && contradiction === null;
    const stored = await storeSearchPage(deps, search, { result, expectNew, isLast: isComplete });
    expectNew = stored.events > 0 && stored.inserted === stored.events;
    inserted += stored.inserted;
    pages++;
  }
  return parts === null ? { pages, inserted, contradiction } : copyParts(deps, search, parts, signal);
}

async function copyParts(
  deps: CopySearchDeps,
  whole: CopiedSearch,
  parts: readonly { from: number; to: number }[],
  signal: AbortSignal,
): Promise<CopiedPages> {
  let [pages, inserted] = [1, 0];
  for (const part of parts) {
    signal.throwIfAborted();
    const copied = await copySearch(deps, { ...whole, ...part }, signal);
    pages += copied.pages;
    inserted += copied.inserted;
    if (copied.contradiction !== null) return { pages, inserted, contradiction: copied.contradiction };
  }
  return { pages, inserted, contradiction: null };
}

interface SearchedPage {
  readonly result: SearchEventLogsResult;
  readonly expectNew: boolean;
  readonly isLast: boolean;
}

function storeSearchPage(
  deps: CopySearchDeps,
  { zoneId, lease, to, conclude, onEvents, onPage }: CopiedSearch,
  { result, expectNew, isLast }: SearchedPage,
) {
  const { page, body } = result;
  const readEntry = (index: number) => page.rows[index];
  return storeEntries(deps, {
    zoneId,
    lease,
    entries: { records: entryBytes(body, "rows", page.rows), readPlainEntry: readEntry, readEntry },
    bytes: body.length,
    expectNew,
    schema: EventRow,
    toEvent: toSearchEvent,
    onEvents,
    conclude: async (tx, stored) => {
      await onPage?.(tx, stored);
      if (isLast) await conclude?.(tx, to);
    },
  });
}
