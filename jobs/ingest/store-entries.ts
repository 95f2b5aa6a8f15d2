/** Reads the pages of the list, and stores entries. */

import { randomBytes } from "node:crypto";
import type { Database, Queryable } from "#db/client.ts";
import { readServerSecret } from "#db/health/server-facts.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { isKnownPage } from "#db/ingest/list-passes.ts";
import { readLogIdHashes } from "#db/ingest/raw-blocks.ts";
import { type StoredPage, storePage } from "#db/ingest/store-page.ts";
import {
  type EventRecord,
  hashEntries,
  type ReadPage,
  readPage,
  type ShownHour,
  sumPageHours,
} from "#ingest/rules/read-page.ts";
import { DAY_MS } from "#lib/units.ts";
import { readAhead } from "#lib/waiting.ts";
import { firstListedDay, toDay } from "#model/horizon.ts";
import { EVENT_ROUTES } from "#model/kinds.ts";
import { packRawBlocks, type RawBlock } from "#model/raw-block.ts";
import { daysOf, hashEventKey, spanOf, unpackLogIdHashes } from "#model/waf-event.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import {
  eventLogPages,
  type PageOfPass,
  type ReadEventLogsResult,
  toLogDay,
} from "#platform/list-event-logs.ts";
import type { JobContext } from "../context.ts";
import { isZoneSuspect, recogniseAnswer } from "../proof/judge-route.ts";

export interface StoreEntriesDeps
  extends Pick<JobContext, "database" | "partitions" | "clock" | "observer" | "afterPage"> {
  /** Keeps erased data from being stored again. Without it a page that may hold erased data is refused. */
  readonly erasures?: ErasureGuard;
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

/**
 * Packs the records that no block holds, neither a stored one nor one of `before`, which may not be stored yet. A crash
 * before the blocks are stored, or a second runner, at worst keeps one record twice.
 */
export async function packNewRecords(
  db: Queryable,
  zoneId: number,
  records: readonly EventRecord[],
  before: readonly RawBlock[] = [],
): Promise<RawBlock[]> {
  const span = spanOf(records);
  if (span === null) return [];
  const { firstAt: fromMs, lastAt: toMs } = span;
  const packed = await readLogIdHashes(db, zoneId, { fromMs, toMs, days: daysOf(records) });
  const known = [...packed, ...before.map(({ logIdHashes }) => logIdHashes)];
  const kept = new Set(known.flatMap(unpackLogIdHashes));
  const entries = records.map((record) => ({ ...record, logIdHash: hashEventKey(record) }));
  return packRawBlocks(entries.filter(({ logIdHash }) => !kept.has(logIdHash)));
}

const keys = new WeakMap<Database, string>();

/**
 * Returns the key of the hashes of matched texts. The first process that asks for the key makes it; all replicas have the same
 * one. The key stays in memory.
 */
export async function readHashKey(database: Database): Promise<string> {
  const known = keys.get(database);
  if (known !== undefined) return known;
  const key = (await readServerSecret(database.db, "matched-text", randomBytes(32))).toString("hex");
  keys.set(database, key);
  return key;
}

interface ReadListPagesDeps extends Pick<JobContext, "database" | "clock"> {
  readonly edge: Pick<EdgeClient, "readEventLogs">;
}

interface DayList {
  readonly zoneId: number;
  readonly dayStart: number;
  /** Token of the first page to read; null for the list's first page. */
  readonly continuationToken: string | null;
}

export interface ReadListPage extends ReadPage, PageOfPass {
  /** Number of entries. */
  readonly entries: number;
  /** Size of the page, decompressed. */
  readonly bytes: number;
  readonly hash: Buffer;
  /** Null on a page without events. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  /** True if a page with exactly these entries is in the ledger of the day. */
  readonly isKnown: boolean;
  /** The records that no block holds yet. */
  readonly rawBlocks: readonly RawBlock[];
  /** The events that the page adds to its pass, by hour. */
  readonly hours: readonly ShownHour[];
  /** True if the page shows events that are known, or no route shows nothing of these. */
  readonly isRecognised: boolean;
  /** True if the page may not be the zone's. */
  readonly isDoubtful: boolean;
}

/**
 * Returns the pages of a pass over a day's list, each ready to be stored. While the caller stores one page, the next
 * page is packed and the page after it is fetched.
 */
export function readListPages(deps: ReadListPagesDeps, list: DayList, signal: AbortSignal) {
  const { zoneId, dayStart, continuationToken } = list;
  const params = { shieldZoneId: zoneId, date: toLogDay(dayStart), continuationToken };
  const pages = readAhead(eventLogPages(deps.edge.readEventLogs, params, signal));
  return readAhead(makeReady(deps, list, pages));
}

async function* makeReady(
  { database, clock }: ReadListPagesDeps,
  { zoneId, dayStart }: DayList,
  pages: AsyncIterable<ReadEventLogsResult & PageOfPass>,
): AsyncGenerator<ReadListPage, void, undefined> {
  const { db } = database;
  const key = await readHashKey(database);
  const isSuspect = await isZoneSuspect(db, zoneId, EVENT_ROUTES);
  const day = toDay(dayStart);
  const source = { route: "list", day } as const;
  // The previous page may not be stored yet, so its blocks are not in the database.
  let before: readonly RawBlock[] = [];
  const shown = new Set<string>();
  for await (const { entries, bytes, token, nextToken, looped } of pages) {
    const hash = hashEntries(entries);
    const isKnown = await isKnownPage(db, zoneId, day, hash);
    const read = readPage(entries, { ...source, receivedAt: clock(), hashKey: isKnown ? null : key });
    const span = spanOf(read.events);
    const isNew = span !== null && !isKnown;
    // The only page of a day shows the whole day.
    const isOnly = token === null && nextToken === null;
    const ids = new Set(read.events.map(({ logId }) => logId));
    const recognition = isNew
      ? await recogniseAnswer(db, zoneId, {
          fromMs: isOnly ? dayStart : span.firstAt,
          toMs: isOnly ? dayStart + DAY_MS - 1 : span.lastAt,
          isResolved: false,
          shows: (logId) => ids.has(logId),
        })
      : "neutral";
    const rawBlocks = isNew ? await packNewRecords(db, zoneId, read.records, before) : [];
    if (isNew) before = rawBlocks;
    const isDoubtful = isNew && (recognition === "unknown" || (recognition === "neutral" && isSuspect));
    yield {
      ...read,
      // The records of other pages are packed, and would keep the whole answer in memory.
      records: isDoubtful ? read.records : [],
      token,
      nextToken,
      looped,
      hash,
      isKnown,
      entries: entries.length,
      bytes,
      firstAt: span?.firstAt ?? null,
      lastAt: span?.lastAt ?? null,
      hours: sumPageHours(read.events, shown),
      rawBlocks,
      isRecognised: isKnown || recognition === "known" || !isSuspect,
      isDoubtful,
    };
  }
}
