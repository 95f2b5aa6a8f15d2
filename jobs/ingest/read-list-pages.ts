import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { eventLogPages, type PageOfPass } from "#adapters/edge/event-log-pages.ts";
import type { ListEventLogsParams, ReadEventLogsResult } from "#adapters/edge/list-event-logs.ts";
import { toLogDay } from "#adapters/edge/log-day.ts";
import type { Database } from "#db/client.ts";
import { isKnownPage } from "#db/ingest/list-passes.ts";
import { readLogIdHashes } from "#db/ingest/raw-blocks.ts";
import type { Clock } from "#lib/clock.ts";
import { releaseMemory } from "#lib/own-memory.ts";
import { readAhead } from "#lib/read-ahead.ts";
import { DAY_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { EVENT_ROUTES } from "#model/kinds.ts";
import { unpackLogIdHashes } from "#model/log-id-hash.ts";
import { packRawBlocks, type RawBlock } from "#model/raw-block.ts";
import { hashLogId } from "#stages/coverage/id-digest.ts";
import { acceptedAt } from "#stages/ingest/accepted-times.ts";
import { unpackRecords } from "#stages/ingest/packed-records.ts";
import { createShownIds, type ShownHour, sumPageHours } from "#stages/ingest/sum-page-hours.ts";
import { isZoneSuspect } from "../coverage/judge-route.ts";
import { recogniseAnswer } from "../coverage/recognise-answer.ts";
import type { DigestListPage, ListPageDigest } from "./list-page-workers.ts";

interface ReadListPagesDeps {
  readonly database: Database;
  readonly edge: Pick<EdgeClient, "readEventLogs">;
  readonly digestListPage: DigestListPage;
  readonly clock: Clock;
}

interface DayList {
  readonly zoneId: number;
  readonly dayStart: number;
  /** Token of the first page to read; null for the list's first page. */
  readonly continuationToken: string | null;
}

type ListPage = ReadEventLogsResult<ListPageDigest> & PageOfPass;

export interface ReadyListPage extends Omit<ListPage, "content"> {
  readonly content: ListPageDigest;
  /** True if a page with exactly these entries is in the ledger of the day. */
  readonly isKnown: boolean;
  /** The records that no block holds yet. A crash before they are stored at worst keeps one record twice. */
  readonly rawBlocks: readonly RawBlock[];
  /** The events that the page adds to its pass, by hour. */
  readonly hours: readonly ShownHour[];
  /** True if the page shows events that are known, or no route shows nothing of these. */
  readonly isRecognised: boolean;
  /** The entries of a page that may not be the zone's, byte for byte; empty for every other page. */
  readonly doubtful: readonly Buffer[];
}

/**
 * Returns the pages of a pass over a day's list, each ready to be stored. While the caller stores one page, the next
 * page is packed and the page after it is fetched and digested, so that each page takes only the time of its
 * transaction.
 */
export function readListPages(deps: ReadListPagesDeps, list: DayList, signal: AbortSignal) {
  const { zoneId, dayStart, continuationToken } = list;
  const read = (body: Buffer) =>
    deps.digestListPage(body, { zoneId, day: toDay(dayStart), accepted: acceptedAt(deps.clock()) });
  const ask = (params: ListEventLogsParams, until?: AbortSignal) =>
    deps.edge.readEventLogs(params, read, until);
  const params = { shieldZoneId: zoneId, date: toLogDay(dayStart), continuationToken };
  const pages = readAhead(eventLogPages(ask, params, signal));
  return readAhead(makeReady(deps.database, list, pages));
}

async function* makeReady(
  { db }: Database,
  { zoneId, dayStart }: DayList,
  pages: AsyncIterable<ListPage>,
): AsyncGenerator<ReadyListPage, void, undefined> {
  const isSuspect = await isZoneSuspect(db, zoneId, EVENT_ROUTES);
  // The previous page may not be stored yet, so its records are not in the database.
  let before: readonly string[] = [];
  const shownBefore = createShownIds();
  for await (const page of pages) {
    const content = await page.content;
    const hours = sumPageHours(content.records.times, content.idHashes, shownBefore);
    const isKnown = await isKnownPage(db, zoneId, toDay(dayStart), content.hash);
    const { firstAt, lastAt, records } = content;
    if (isKnown || firstAt === null || lastAt === null) {
      const isRecognised = isKnown || !isSuspect;
      yield { ...page, content, isKnown, hours, rawBlocks: [], isRecognised, doubtful: [] };
      continue;
    }
    // The only page of a day shows the whole day.
    const isOnly = page.token === null && page.nextToken === null;
    const recognition = await recogniseAnswer(db, zoneId, {
      fromMs: isOnly ? dayStart : firstAt,
      toMs: isOnly ? dayStart + DAY_MS - 1 : lastAt,
      isResolved: false,
      shows: showsIds(content.idHashes),
    });
    const isDoubtful = recognition === "unknown" || (recognition === "neutral" && isSuspect);
    const doubtful = isDoubtful ? unpackRecords(records, new Set()).map(({ raw }) => Buffer.from(raw)) : [];
    const days = [toDay(firstAt), toDay(lastAt)];
    const packed = await readLogIdHashes(db, zoneId, { fromMs: firstAt, toMs: lastAt, days });
    const kept = new Set([...before, ...packed.flatMap(unpackLogIdHashes)]);
    before = unpackLogIdHashes(records.logIdHashes);
    const rawBlocks = await packRawBlocks(unpackRecords(records, kept));
    releaseMemory(records.bytes);
    const isRecognised = recognition === "known" || !isSuspect;
    yield { ...page, content, isKnown, hours, rawBlocks, isRecognised, doubtful };
  }
}

function showsIds(idHashes: Buffer): (logId: string) => boolean {
  const shown = new Set(unpackLogIdHashes(idHashes));
  return (logId) => shown.has(hashLogId(logId));
}
