import { hash } from "node:crypto";
import type { Queryable } from "#db/client.ts";
import { readHashKey } from "#db/health/server-facts.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { breakListPass, isKnownPage, type ListPass, recordListPage } from "#db/ingest/list-passes.ts";
import { noteWrongTimes } from "#db/ingest/merge-doubles.ts";
import { wasQuarantined } from "#db/ingest/quarantine.ts";
import { packNewRecords } from "#db/ingest/raw-blocks.ts";
import { type StoredPage, storePage } from "#db/ingest/store-page.ts";
import { isPassedNews, watchPageOrder } from "#ingest/rules/plan-pass.ts";
import {
  BELIEVE_AFTER_MS,
  HELD_BACK,
  hashEntries,
  OUTSIDE_DAY,
  type ReadPage,
  readPage,
  type ShownHour,
  sumPageHours,
  toHeldBack,
} from "#ingest/rules/read-page.ts";
import { DAY_MS } from "#lib/units.ts";
import { readAhead } from "#lib/waiting.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import { EVENT_ROUTES, type PassResult } from "#model/kinds.ts";
import type { RawBlock } from "#model/raw-block.ts";
import { daysOf, spanOf } from "#model/waf-event.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { eventLogPages, type PageOfPass, toLogDay } from "#platform/list-event-logs.ts";
import { SETTLE_MS } from "#proof/rules/hour-proof.ts";
import type { JobContext } from "../context.ts";
import { isZoneSuspect, recogniseAnswer } from "../proof/judge-route.ts";

/**
 * After this many pages in a row that were empty or seen before in the pass, the pass ends: its tokens lead nowhere.
 */
const MAX_STALLED_PAGES = 20;

export interface WalkDayDeps
  extends Pick<JobContext, "database" | "partitions" | "clock" | "log" | "observer" | "afterPage"> {
  readonly edge: Pick<EdgeClient, "readEventLogs">;
  /** Keeps erased data from being stored again. Without it a page that may hold erased data is refused. */
  readonly erasures?: ErasureGuard;
}

export interface DayToWalk {
  readonly zoneId: number;
  readonly dayStart: number;
  /** The lease of this day's list. Every page is committed under its fence. */
  readonly lease: { readonly name: string; readonly fence: number };
}

export interface EndedPass extends ListPass {
  /** Entries that belong to another day. */
  readonly outsideDay: number;
  /** Entries that could not be read. */
  readonly unreadable: number;
  /** True if a page shows events that are known, or no route shows nothing of these. */
  readonly isRecognised: boolean;
}

interface WalkedPass {
  readonly pass: ListPass;
  readonly mayStop: boolean;
}

/** Returns the pass as it ended, or null when the signal ended it before that. */
export async function walkPass(
  deps: WalkDayDeps,
  day: DayToWalk,
  { pass, mayStop }: WalkedPass,
  signal: AbortSignal,
): Promise<EndedPass | null> {
  const { database, clock, observer } = deps;
  const { zoneId, dayStart } = day;
  const seenPages = new Set<string>();
  let stalledPages = 0;
  let current = pass;
  const order = watchPageOrder(pass.beganAtTail);
  let expectNew = false;
  let previous: { firstAt: number | null } = { firstAt: null };
  let earliestNew: number | null = null;
  // Where the next short pass begins, so that it shows entries that appear late.
  let tail: { token: string | null } | null = null;
  const lateFrom = pass.startedAt - SETTLE_MS;
  let [outsideDay, unreadable, isRecognised] = [0, 0, false];
  for await (const page of readAhead(readListPages(deps, day, pass.continuationToken, signal))) {
    const { entries, events, firstAt, bytes } = page;
    const outside = page.quarantined.filter(({ reason }) => reason === OUTSIDE_DAY).length;
    outsideDay += outside;
    unreadable += page.quarantined.length - outside;
    isRecognised ||= page.isRecognised;
    if (page.isDoubtful && (await holdBack(deps, day, current, page)))
      return { ...current, passResult: "held", outsideDay, unreadable, isRecognised: false };
    // Entries just outside the day may be correct: a list may be divided by the time at which an event arrived.
    const nearDay = events.filter(({ occurredAt }) => startOfDay(occurredAt) !== dayStart);
    if (nearDay.length > 0)
      outsideDay += await noteWrongTimes(database.db, zoneId, { dayStart, atMs: clock() }, nearDay);
    const pageHash = page.hash.toString("hex");
    stalledPages = entries === 0 || seenPages.has(pageHash) ? stalledPages + 1 : 0;
    seenPages.add(pageHash);
    order.add(page);
    const isLast = page.nextToken === null;
    if (isLast || (page.lastAt ?? 0) >= lateFrom) tail ??= { token: page.token };
    const commitsAt = performance.now();
    const walked = await storeListPage(deps, day, { current, page, expectNew }, (newEntries) => {
      if (page.looped || stalledPages > MAX_STALLED_PAGES) return { passResult: "looped", tailToken: null };
      if (page.nextToken === null) {
        const tailToken = order.isOldestFirst() ? (tail?.token ?? null) : null;
        return { passResult: pass.beganAtTail ? "short" : "full", tailToken };
      }
      const isPassed = mayStop && isPassedNews({ ...page, newEntries }, previous, { earliestNew, lateFrom });
      return { passResult: isPassed ? "short" : null, tailToken: null };
    });
    const commitMs = performance.now() - commitsAt;
    const { stored } = walked;
    current = walked.pass;
    expectNew = events.length > 0 && stored.inserted === events.length;
    if (stored.inserted > 0 && firstAt !== null) {
      earliestNew = Math.min(earliestNew ?? Number.POSITIVE_INFINITY, firstAt);
    }
    previous = { firstAt };
    observer.pageStored({ route: "list", zoneId, entries, ...stored, bytes, commitMs });
    if (stored.inserted + stored.filled > 0) deps.afterPage();
    if (current.passResult !== null) return { ...current, outsideDay, unreadable, isRecognised };
    if (signal.aborted) return null;
  }
  return null;
}

interface ReadListPage extends ReadPage, PageOfPass {
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
 * Yields the pages of a pass from a token on (null: the list's first page), each ready to be stored. While the caller stores
 * one page, the next page is packed and the page after it is fetched.
 */
async function* readListPages(
  { database, clock, edge }: WalkDayDeps,
  { zoneId, dayStart }: DayToWalk,
  continuationToken: string | null,
  signal: AbortSignal,
): AsyncGenerator<ReadListPage, void, undefined> {
  const { db } = database;
  const key = await readHashKey(database);
  const isSuspect = await isZoneSuspect(db, zoneId, EVENT_ROUTES);
  const day = toDay(dayStart);
  const source = { route: "list", day } as const;
  // The previous page may not be stored yet, so its blocks are not in the database.
  let before: readonly RawBlock[] = [];
  const shown = new Set<string>();
  const params = { shieldZoneId: zoneId, date: toLogDay(dayStart), continuationToken };
  const pages = readAhead(eventLogPages(edge.readEventLogs, params, signal));
  for await (const { entries, bytes, token, nextToken, looped } of pages) {
    const pageHash = hashEntries(entries);
    const isKnown = await isKnownPage(db, zoneId, day, pageHash);
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
      hash: pageHash,
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

/**
 * Quarantines the entries of a page that shows nothing known and ends its pass. Returns false and does nothing if the
 * platform has shown the page for an hour: then the page is stored.
 */
async function holdBack(
  { database, clock, erasures }: WalkDayDeps,
  { zoneId, dayStart, lease }: DayToWalk,
  { pass }: ListPass,
  { records }: ReadListPage,
): Promise<boolean> {
  const storedAt = clock();
  const day = toDay(dayStart);
  const raws = records.map(({ raw }) => raw);
  const since = { reason: HELD_BACK, beforeMs: storedAt - BELIEVE_AFTER_MS };
  if (await wasQuarantined(database.db, zoneId, raws, since)) return false;
  const quarantined = toHeldBack(raws, { route: "list", day, receivedAt: storedAt });
  const page = {
    zoneId,
    lease,
    expectNew: false,
    storedAt,
    events: [],
    rawBlocks: [],
    quarantined,
    erasures,
  };
  await storePage(database, page, (tx) =>
    breakListPass(tx, zoneId, day, { pass, fence: lease.fence, passResult: "held" }),
  );
  return true;
}

interface WalkedPage {
  readonly current: ListPass;
  readonly page: ReadListPage;
  readonly expectNew: boolean;
}

async function storeListPage(
  deps: WalkDayDeps,
  { zoneId, dayStart, lease }: DayToWalk,
  { current, page, expectNew }: WalkedPage,
  endOf: (newEntries: number) => { passResult: PassResult | null; tailToken: string | null },
): Promise<{ pass: ListPass; stored: StoredPage }> {
  const { database, partitions, clock, erasures } = deps;
  const { entries, hash: pageHash, firstAt, lastAt, hours, nextToken, rawBlocks } = page;
  const day = toDay(dayStart);
  const conclude = (tx: Queryable, stored: StoredPage) =>
    recordListPage(tx, current, lease.fence, {
      zoneId,
      day,
      entries,
      newEntries: stored.inserted,
      hash: pageHash,
      firstAt,
      lastAt,
      hours,
      nextToken,
      tokenHash: page.token === null ? null : hash("sha256", page.token, "buffer"),
      ...endOf(stored.inserted),
    });
  const { events, quarantined } = page.isKnown ? NOTHING_NEW : page;
  const newPage = { zoneId, lease, expectNew, storedAt: clock(), events, rawBlocks, quarantined, erasures };
  const { stored, concluded } = await partitions.withDays(daysOf(events), () =>
    storePage(database, newPage, conclude),
  );
  return { pass: concluded, stored };
}

const NOTHING_NEW = { events: [], quarantined: [] };
