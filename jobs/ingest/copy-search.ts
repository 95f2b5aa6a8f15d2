import type { Queryable } from "#db/client.ts";
import { readHashKey } from "#db/health/server-facts.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { wasQuarantined } from "#db/ingest/quarantine.ts";
import { packNewRecords } from "#db/ingest/raw-blocks.ts";
import { type StoredPage, storePage } from "#db/ingest/store-page.ts";
import type { OwnedLease } from "#db/postgres/hold-lease.ts";
import { readSuspicions } from "#db/proof/platform-health.ts";
import {
  BELIEVE_AFTER_MS,
  cutEntries,
  HELD_BACK,
  type ReadPage,
  readPage,
  toHeldBack,
} from "#ingest/rules/read-page.ts";
import { many, showTime } from "#lib/format.ts";
import { readAhead } from "#lib/waiting.ts";
import { firstListedDay } from "#model/horizon.ts";
import { daysOf, type WafEvent } from "#model/waf-event.ts";
import type { EventLogsFilter } from "#platform/contract/event-logs.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { searchPages } from "#platform/search-event-logs.ts";
import { splitSpan } from "#proof/rules/plan-search.ts";
import type { JobContext } from "../context.ts";
import { type Contradiction, type Recognition, recogniseAnswer } from "../proof/judge-route.ts";

/** Maximum page size of the platform; platform API spec 2.3. */
const PAGE_SIZE = 500;
/** A search that shows more is split in time, because its rows are kept in memory until they are stored. */
const MAX_BYTES = 128 * 1_024 * 1_024;

export interface StoreEntriesDeps
  extends Pick<JobContext, "database" | "partitions" | "clock" | "observer" | "afterPage"> {
  /** Keeps erased data from being stored again. Without it a page that may hold erased data is refused. */
  readonly erasures?: ErasureGuard;
}

export interface CopySearchDeps extends StoreEntriesDeps {
  readonly edge: Pick<EdgeClient, "searchEventLogs">;
}

/** The span to copy; times in epoch ms. `to` is in the past, so that the pages do not shift while they are read. */
export interface CopiedSearch {
  readonly zoneId: number;
  /** The transaction of every page asserts the fence of this lease. */
  readonly lease: Pick<OwnedLease, "name" | "fence">;
  readonly from: number;
  readonly to: number;
  readonly filters?: readonly EventLogsFilter[];
  /** True if the events are probably all new. */
  readonly expectNew: boolean;
  /** True if an answer without any event is no answer when events are known in the span. */
  readonly mustShow?: boolean;
  /** Called once per part with its events and the number of its pages, before they are stored. */
  readonly onEvents?: (events: readonly WafEvent[], pages: number) => void;
  /** Called once per part with the rows that were stored. */
  readonly onStored?: (rows: readonly unknown[], raws: readonly Buffer[]) => void;
  /**
   * Runs in the transaction of each part, when everything before `through` is stored. Not called when the search has
   * contradicted itself.
   */
  readonly conclude?: (tx: Queryable, through: number) => Promise<void>;
  /** Runs in the transaction of each part. */
  readonly onPage?: (tx: Queryable, stored: StoredPage) => Promise<void>;
}

export interface CopiedPages {
  readonly pages: number;
  /** Events that were not stored before. */
  readonly inserted: number;
  /** Reason why the search cannot have shown everything, or is not the zone's; null when there is no such sign. */
  readonly contradiction: Contradiction | null;
  /** True if the answer may end a suspicion: it shows events that are known, or no route shows nothing of these. */
  readonly isRecognised: boolean;
  /** Whether a route of the zone was suspect when the search began. */
  readonly wasSuspect: boolean;
}

/**
 * Copies the results of one flat search: reads all its pages, recognises the answer, and stores it in one transaction. A
 * span with too many events for that is split in time. A killed copy may be run again from the beginning. If a search
 * shows none of the known events of its span, its rows are quarantined instead, until the platform has shown that for an
 * hour.
 */
export async function copySearch(
  deps: CopySearchDeps,
  search: CopiedSearch,
  signal: AbortSignal,
): Promise<CopiedPages> {
  const { zoneId, lease, to, expectNew, conclude, onEvents, onStored, onPage } = search;
  const suspicions = await readSuspicions(deps.database.db, [zoneId]);
  const isSuspect = suspicions.some(({ isWhole, route }) => isWhole && route === "search");
  const answer = await readRows(deps, search, signal);
  if ("parts" in answer) return copyParts(deps, search, answer.parts, signal);
  const { rows, raws, pages, bytes } = answer;
  // Nothing is known of a span that is searched first, unless the platform is suspect.
  const recognition = expectNew && !isSuspect ? "neutral" : await recogniseRows(deps, search, rows);
  const isDoubtful = recognition === "unknown" || (recognition === "neutral" && isSuspect && rows.length > 0);
  const isHeldBack = isDoubtful && !(await isBelieved(deps, search, raws));
  const contradiction = isHeldBack
    ? { reason: describeUnknown(search, rows.length), isWhole: true }
    : answer.contradiction;
  const hashKey = await readHashKey(deps.database);
  const source = { route: "search", day: null, receivedAt: deps.clock(), hashKey } as const;
  const read = isHeldBack
    ? { events: [], records: [], quarantined: toHeldBack(raws, source) }
    : readPage(raws, source, rows);
  onEvents?.(read.events, pages);
  const inserted = await storeEntries(deps, {
    ...read,
    zoneId,
    lease,
    expectNew,
    bytes,
    conclude: async (tx, stored) => {
      await onPage?.(tx, stored);
      if (contradiction === null) await conclude?.(tx, to);
    },
  });
  if (!isHeldBack) onStored?.(rows, raws);
  const isRecognised = recognition === "known" || !isSuspect;
  return { pages, inserted, contradiction, isRecognised, wasSuspect: suspicions.length > 0 };
}

/** The rows of all pages of a search. */
export interface SearchedRows {
  readonly rows: readonly unknown[];
  /** The rows byte for byte. */
  readonly raws: readonly Buffer[];
  readonly pages: number;
  readonly bytes: number;
  readonly contradiction: Contradiction | null;
}

/** Reads the pages of a search, or returns the parts of a span that is too large for one transaction. */
export async function readRows(
  { edge }: Pick<CopySearchDeps, "edge">,
  { zoneId, from, to, filters }: Pick<CopiedSearch, "zoneId" | "from" | "to" | "filters">,
  signal: AbortSignal,
): Promise<SearchedRows | { readonly parts: readonly { from: number; to: number }[] }> {
  const filtered = filters === undefined ? {} : { filters: [...filters] };
  const params = { shieldZoneId: zoneId, request: { from, to, pageSize: PAGE_SIZE, ...filtered } };
  const rows: unknown[] = [];
  const raws: Buffer[] = [];
  let [pages, bytes] = [0, 0];
  let contradiction: Contradiction | null = null;
  for await (const { page, body } of readAhead(searchPages(edge.searchEventLogs, params, signal))) {
    const isTooLarge = bytes + body.length > MAX_BYTES;
    const parts = isTooLarge ? halve(from, to) : pages === 0 ? splitSpan(from, to, page.total) : null;
    // The pages end first, because a rejection of work in parallel could otherwise be unhandled.
    if (parts !== null) return { parts };
    if (page.rows.length === 0 && page.total > pages * PAGE_SIZE) {
      const reason = `A search page is empty although ${page.total} events are announced.`;
      contradiction = { reason, isWhole: false };
    }
    if (isTooLarge) {
      const reason = `A search of one millisecond shows more than ${rows.length} events, which are too many to read at once.`;
      contradiction = { reason, isWhole: false };
      break;
    }
    pages++;
    bytes += body.length;
    rows.push(...page.rows);
    raws.push(...cutEntries(body, "rows", page.rows));
  }
  return { rows, raws, pages, bytes, contradiction };
}

function halve(from: number, to: number) {
  const middle = Math.floor((from + to) / 2);
  return middle === from
    ? null
    : [
        { from, to: middle },
        { from: middle, to },
      ];
}

/** Returns what the rows show of the events that are known of the span. */
async function recogniseRows(
  { database }: CopySearchDeps,
  { zoneId, from, to, filters, mustShow = false }: CopiedSearch,
  rows: readonly unknown[],
): Promise<Recognition> {
  const shown = rows.flatMap((row) => {
    const { logId, timestamp } = (row ?? {}) as { logId?: unknown; timestamp?: unknown };
    return typeof logId === "string" && typeof timestamp === "number" ? [logId] : [];
  });
  // A filter may select none of the known events, and an hour may have lost all of its events.
  if (filters !== undefined || (shown.length === 0 && !mustShow)) return "neutral";
  const ids = new Set(shown);
  const span = { fromMs: from, toMs: to - 1 };
  return recogniseAnswer(database.db, zoneId, { ...span, isResolved: true, shows: (id) => ids.has(id) });
}

/** Returns whether the platform has shown this for an hour, so that it is stored although nothing of it is known. */
async function isBelieved(
  { database: { db }, clock }: CopySearchDeps,
  { zoneId }: CopiedSearch,
  raws: readonly Buffer[],
): Promise<boolean> {
  const since = clock() - BELIEVE_AFTER_MS;
  if (raws.length > 0) return wasQuarantined(db, zoneId, raws, { reason: HELD_BACK, beforeMs: since });
  const suspicions = await readSuspicions(db, [zoneId]);
  return suspicions.some((one) => one.route === "search" && one.isWhole && one.since <= since);
}

function describeUnknown({ from, to }: CopiedSearch, rows: number): string {
  const shown = rows === 0 ? "no event" : many(rows, "event");
  const span = `from ${showTime(from)} to ${showTime(to)} UTC`;
  return `The search shows ${shown} ${span}, and none of the events that it showed before.`;
}

async function copyParts(
  deps: CopySearchDeps,
  whole: CopiedSearch,
  parts: readonly { from: number; to: number }[],
  signal: AbortSignal,
): Promise<CopiedPages> {
  let [pages, inserted, isRecognised, wasSuspect] = [1, 0, false, false];
  for (const part of parts) {
    signal.throwIfAborted();
    const copied = await copySearch(deps, { ...whole, ...part }, signal);
    pages += copied.pages;
    inserted += copied.inserted;
    isRecognised ||= copied.isRecognised;
    wasSuspect ||= copied.wasSuspect;
    if (copied.contradiction !== null) return { ...copied, pages, inserted };
  }
  return { pages, inserted, contradiction: null, isRecognised, wasSuspect };
}

/** Entries of a span, as the platform returned them. */
interface EntriesToStore extends ReadPage {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  /** Size of the platform's answer. */
  readonly bytes: number;
  /** True if the events are probably all new. */
  readonly expectNew: boolean;
  /** Runs in the same transaction, before the fence is checked. */
  readonly conclude: (tx: Queryable, stored: StoredPage) => Promise<unknown>;
}

/**
 * Stores entries of the routes with the search language, which have every dimension. While the list still shows the
 * day, the record comes from the list, because the list's record has more fields. Returns the number of new events.
 */
export async function storeEntries(
  { database, partitions, clock, observer, afterPage, erasures }: StoreEntriesDeps,
  { bytes, records, conclude, ...entries }: EntriesToStore,
): Promise<number> {
  const { zoneId, events, quarantined } = entries;
  const storedAt = clock();
  const unlisted = records.filter(({ occurredAt }) => occurredAt < firstListedDay(storedAt));
  const rawBlocks = await packNewRecords(database.db, zoneId, unlisted);
  const page = { ...entries, storedAt, rawBlocks, erasures };
  const commitsAt = performance.now();
  const { stored } = await partitions.withDays(daysOf(events), () => storePage(database, page, conclude));
  const commitMs = performance.now() - commitsAt;
  const count = events.length + quarantined.length;
  observer.pageStored({ route: "search", zoneId, entries: count, bytes, commitMs, ...stored });
  if (stored.inserted + stored.filled > 0) afterPage();
  return stored.inserted;
}
