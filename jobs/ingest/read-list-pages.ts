import { EventLogEntry } from "#adapters/edge/contract/event-logs.ts";
import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import {
  eventLogPages,
  type PageOfPass,
  type ReadEventLogsResult,
  toLogDay,
} from "#adapters/edge/list-event-logs.ts";
import type { Database } from "#db/client.ts";
import { isKnownPage } from "#db/ingest/list-passes.ts";
import type { Clock } from "#lib/clock.ts";
import { DAY_MS } from "#lib/units.ts";
import { readAhead } from "#lib/waiting.ts";
import { toDay } from "#model/horizon.ts";
import { EVENT_ROUTES } from "#model/kinds.ts";
import type { RawBlock } from "#model/raw-block.ts";
import { spanOf } from "#model/waf-event.ts";
import {
  hashEntries,
  type ReadPage,
  readPage,
  type ShownHour,
  sumPageHours,
} from "#stages/ingest/read-page.ts";
import { toListEvent } from "#stages/ingest/to-event.ts";
import { isZoneSuspect, recogniseAnswer } from "../coverage/judge-route.ts";
import { packNewRecords, readHashKey } from "./store-entries.ts";

interface ReadListPagesDeps {
  readonly database: Database;
  readonly edge: Pick<EdgeClient, "readEventLogs">;
  readonly clock: Clock;
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
  const source = { route: "list", day, schema: EventLogEntry, toEvent: toListEvent } as const;
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
