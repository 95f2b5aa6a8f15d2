import { type EventLogsFilter, EventRow } from "#adapters/edge/contract/event-logs-search.ts";
import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import type { SearchEventLogsResult } from "#adapters/edge/search-event-logs.ts";
import { searchPages } from "#adapters/edge/search-pages.ts";
import type { Queryable } from "#db/client.ts";
import { readSuspicions } from "#db/coverage/zone-suspicions.ts";
import { wasQuarantined } from "#db/ingest/quarantine.ts";
import type { StoredPage } from "#db/ingest/store-page.ts";
import type { HeldLease } from "#db/postgres/hold-lease.ts";
import { many } from "#lib/format.ts";
import { readAhead } from "#lib/read-ahead.ts";
import { showTime } from "#lib/show-time.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { splitSpan } from "#stages/coverage/split-span.ts";
import { entryBytes } from "#stages/ingest/entry-bytes.ts";
import { BELIEVE_AFTER_MS, HELD_BACK } from "#stages/ingest/held-back.ts";
import { toSearchEvent } from "#stages/ingest/to-search-event.ts";
import { type Contradiction, isZoneSuspect } from "../coverage/judge-route.ts";
import { type Recognition, recogniseAnswer } from "../coverage/recognise-answer.ts";
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
  /** True if an answer without any event is no answer when events are known in the span. */
  readonly mustShow?: boolean;
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
  /** Why the search cannot have shown everything, or is not the zone's; null when there is no such sign. */
  readonly contradiction: Contradiction | null;
  /** True if the answer may end a suspicion: it shows events that are known, or no route shows nothing of these. */
  readonly isRecognised: boolean;
}

/**
 * Copies the results of one flat search, page by page, each page in one transaction. A span with too many events for
 * paging is split in time. A killed copy may be run again from the beginning. Pages are stored once one of them shows an
 * event that is known, or none can be known. If a search shows none of the known events of its span, its pages are
 * quarantined instead, until the platform has shown that for an hour.
 */
export async function copySearch(
  deps: CopySearchDeps,
  search: CopiedSearch,
  signal: AbortSignal,
): Promise<CopiedPages> {
  const { zoneId, from, to, filters } = search;
  const isSuspect = await isZoneSuspect(deps.database.db, zoneId, ["search"]);
  const request = {
    from,
    to,
    pageSize: PAGE_SIZE,
    ...(filters === undefined ? {} : { filters: [...filters] }),
  };
  const params = { shieldZoneId: zoneId, request };
  let [pages, inserted, rows] = [0, 0, 0];
  let { expectNew } = search;
  let contradiction: Contradiction | null = null;
  // Without known events every page is as good as the next one. Known events are looked for while any page may be false.
  let recognition: Recognition = "neutral";
  const isStoredAtOnce = () => recognition === "known" || (search.expectNew && !isSuspect);
  const waiting: SearchEventLogsResult[] = [];
  const store = async (result: SearchEventLogsResult, { isLast = false, isHeldBack = false } = {}) => {
    const isComplete = isLast && contradiction === null;
    const stored = await storeSearchPage(deps, search, { result, expectNew, isLast: isComplete, isHeldBack });
    expectNew = stored.events > 0 && stored.inserted === stored.events;
    inserted += stored.inserted;
  };
  let parts: ReturnType<typeof splitSpan> = null;
  for await (const result of readAhead(searchPages(deps.edge.searchEventLogs, params, signal))) {
    const { page } = result;
    parts = pages === 0 ? splitSpan(from, to, page.total) : null;
    // The pages end first, because a rejection of work in parallel could otherwise be unhandled.
    if (parts !== null) break;
    const isLast = pages + 1 >= page.totalPages || page.rows.length === 0;
    if (page.rows.length === 0 && page.total > pages * PAGE_SIZE)
      contradiction = {
        reason: `A search page is empty although ${page.total} events are announced.`,
        isWhole: false,
      };
    pages++;
    rows += page.rows.length;
    if (!isStoredAtOnce()) recognition = await recogniseRows(deps, search, page.rows);
    if (isStoredAtOnce()) for (const earlier of waiting.splice(0)) await store(earlier);
    if (isStoredAtOnce()) await store(result, { isLast });
    else waiting.push(result);
  }
  if (parts !== null) return copyParts(deps, search, parts, signal);
  if (!isStoredAtOnce())
    recognition = await recogniseRows(
      deps,
      search,
      waiting.flatMap(({ page }) => page.rows),
      { isAll: true },
    );
  const isDoubtful = recognition === "unknown" || (recognition === "neutral" && isSuspect && rows > 0);
  const isHeldBack = isDoubtful && !(await isBelieved(deps, search, waiting));
  if (isHeldBack) contradiction = { reason: describeUnknown(search, rows), isWhole: true };
  for (const [index, result] of waiting.entries())
    await store(result, { isLast: index === waiting.length - 1, isHeldBack });
  return { pages, inserted, contradiction, isRecognised: recognition === "known" || !isSuspect };
}

/** Returns what rows show of the events that are known of their time, or with `isAll` of the whole span. */
async function recogniseRows(
  { database }: CopySearchDeps,
  { zoneId, from, to, filters, mustShow = false }: CopiedSearch,
  rows: readonly unknown[],
  { isAll = false } = {},
): Promise<Recognition> {
  const keys = rows.flatMap((row) => {
    const { logId, timestamp } = (row ?? {}) as { logId?: unknown; timestamp?: unknown };
    return typeof logId === "string" && typeof timestamp === "number" ? [{ logId, timestamp }] : [];
  });
  // A filter may select none of the known events, and an hour may have lost all of its events.
  if (filters !== undefined || (keys.length === 0 && !(isAll && mustShow))) return "neutral";
  const ids = new Set(keys.map(({ logId }) => logId));
  const times = keys.map(({ timestamp }) => timestamp);
  const span = isAll
    ? { fromMs: from, toMs: to - 1 }
    : { fromMs: Math.max(from, Math.min(...times)), toMs: Math.min(to - 1, Math.max(...times)) };
  const recognition = await recogniseAnswer(database.db, zoneId, {
    ...span,
    isResolved: true,
    shows: (id) => ids.has(id),
  });
  return recognition === "unknown" && !isAll ? "neutral" : recognition;
}

/** Returns whether the platform has shown this for an hour, so that it is stored although nothing of it is known. */
async function isBelieved(
  { database: { db }, clock }: CopySearchDeps,
  { zoneId }: CopiedSearch,
  waiting: readonly SearchEventLogsResult[],
): Promise<boolean> {
  const since = clock() - BELIEVE_AFTER_MS;
  const raws = waiting.flatMap(({ page, body }) => entryBytes(body, "rows", page.rows));
  if (raws.length > 0) return wasQuarantined(db, zoneId, raws, { reason: HELD_BACK, beforeMs: since });
  const suspicions = await readSuspicions(db, [zoneId]);
  return suspicions.some((one) => one.route === "search" && one.isWhole && one.since <= since);
}

function describeUnknown({ from, to }: CopiedSearch, rows: number): string {
  const span = `from ${showTime(from)} to ${showTime(to)} UTC`;
  return rows === 0
    ? `The search shows no event ${span}, and none of the events that it showed before.`
    : `The search shows ${many(rows, "event")} ${span}, and none of the events that it showed before.`;
}

async function copyParts(
  deps: CopySearchDeps,
  whole: CopiedSearch,
  parts: readonly { from: number; to: number }[],
  signal: AbortSignal,
): Promise<CopiedPages> {
  let [pages, inserted, isRecognised] = [1, 0, false];
  for (const part of parts) {
    signal.throwIfAborted();
    const copied = await copySearch(deps, { ...whole, ...part }, signal);
    pages += copied.pages;
    inserted += copied.inserted;
    isRecognised ||= copied.isRecognised;
    if (copied.contradiction !== null) return { ...copied, pages, inserted };
  }
  return { pages, inserted, contradiction: null, isRecognised };
}

interface SearchedPage {
  readonly result: SearchEventLogsResult;
  readonly expectNew: boolean;
  readonly isLast: boolean;
  readonly isHeldBack: boolean;
}

function storeSearchPage(
  deps: CopySearchDeps,
  { zoneId, lease, to, conclude, onEvents, onPage }: CopiedSearch,
  { result, expectNew, isLast, isHeldBack }: SearchedPage,
) {
  const { page, body } = result;
  const readEntry = (index: number) => page.rows[index];
  return storeEntries(deps, {
    zoneId,
    lease,
    entries: { records: entryBytes(body, "rows", page.rows), readPlainEntry: readEntry, readEntry },
    bytes: body.length,
    expectNew,
    isHeldBack,
    schema: EventRow,
    toEvent: toSearchEvent,
    onEvents,
    conclude: async (tx, stored) => {
      await onPage?.(tx, stored);
      if (isLast) await conclude?.(tx, to);
    },
  });
}
