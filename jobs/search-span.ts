import type { Queryable } from "../db/client.ts";
import type { StoredPage } from "../db/queries/store-page.ts";
import { splitSpan } from "../src/coverage/split-span.ts";
import { type EventLogsFilter, EventRow } from "../src/edge/contract/event-logs-search.ts";
import type { EdgeClient } from "../src/edge/edge-client.ts";
import type { SearchEventLogsResult } from "../src/edge/search-event-logs.ts";
import { searchPages } from "../src/edge/search-pages.ts";
import { entryBytes } from "../src/ingest/entry-bytes.ts";
import { toSearchEvent } from "../src/ingest/to-search-event.ts";
import { readAhead } from "../src/read-ahead.ts";
import { type StoreEntriesDeps, storeEntries } from "./store-entries.ts";

/** The most the platform gives; platform API spec 2.3. */
const PAGE_SIZE = 500;

export interface SearchSpanDeps extends StoreEntriesDeps {
  readonly edge: Pick<EdgeClient, "searchEventLogs">;
}

/** What a page brought, told inside its transaction. */
export interface SpanPage extends StoredPage {
  /** Everything before is stored, epoch ms; null on a page that does not end its part of the span. */
  readonly through: number | null;
}

/** A flat search of [from, to), epoch ms; `to` must lie in the past of the platform, so that its pages stand still. */
export interface SpanToSearch {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  readonly from: number;
  readonly to: number;
  /** Its events are probably all new. */
  readonly isFirst: boolean;
  readonly filters?: readonly EventLogsFilter[];
  /** Runs in the transaction of each page, before the fence is checked. */
  readonly conclude: (tx: Queryable, page: SpanPage) => Promise<unknown>;
}

export interface SearchedSpan {
  readonly pages: number;
  readonly inserted: number;
}

/**
 * Reads every event of a span and stores it page by page; a span with more events than paging can hold is searched in
 * parts, in the order of time. A killed search is begun again at the last `through`: every page may be stored twice.
 */
export function searchSpan(
  deps: SearchSpanDeps,
  span: SpanToSearch,
  signal: AbortSignal,
): Promise<SearchedSpan> {
  return searchPart(deps, { ...span, isWhole: true }, signal);
}

interface Part extends SpanToSearch {
  /** Not yet split. */
  readonly isWhole: boolean;
}

async function searchPart(deps: SearchSpanDeps, part: Part, signal: AbortSignal): Promise<SearchedSpan> {
  const { zoneId, from, to, filters } = part;
  const request = {
    from,
    to,
    pageSize: PAGE_SIZE,
    ...(filters === undefined ? {} : { filters: [...filters] }),
  };
  const params = { shieldZoneId: zoneId, request };
  let pages = 0;
  let inserted = 0;
  let expectNew = part.isFirst;
  let parts: ReturnType<typeof splitSpan> = null;
  for await (const result of readAhead(searchPages(deps.edge.searchEventLogs, params, signal))) {
    parts = pages === 0 && part.isWhole ? splitSpan(from, to, result.page.total) : null;
    // The pages end first: work begun beside them could fail while nobody listens.
    if (parts !== null) break;
    const isLast = pages + 1 >= result.page.totalPages || result.page.rows.length === 0;
    const stored = await storeSearchPage(deps, { result, part, expectNew, isLast });
    expectNew = stored.events > 0 && stored.inserted === stored.events;
    inserted += stored.inserted;
    pages++;
  }
  return parts === null ? { pages, inserted } : searchParts(deps, part, parts, signal);
}

async function searchParts(
  deps: SearchSpanDeps,
  whole: SpanToSearch,
  parts: readonly { from: number; to: number }[],
  signal: AbortSignal,
): Promise<SearchedSpan> {
  const sum = { pages: 1, inserted: 0 };
  for (const part of parts) {
    signal.throwIfAborted();
    const { pages, inserted } = await searchPart(deps, { ...whole, ...part, isWhole: false }, signal);
    sum.pages += pages;
    sum.inserted += inserted;
  }
  return sum;
}

interface PageOfPart {
  readonly result: SearchEventLogsResult;
  readonly part: Part;
  readonly expectNew: boolean;
  readonly isLast: boolean;
}

function storeSearchPage(deps: SearchSpanDeps, { result, part, expectNew, isLast }: PageOfPart) {
  const { zoneId, lease, conclude } = part;
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
    conclude: (tx, stored) => conclude(tx, { ...stored, through: isLast ? part.to : null }),
  });
}
