import { hash } from "node:crypto";
import { z } from "zod";
import type { Database, Queryable } from "../db/client.ts";
import { type HeldLease, holdLease } from "../db/hold-lease.ts";
import type { PartitionKeeper } from "../db/partition-keeper.ts";
import { readCoveredHours } from "../db/queries/covered-hours.ts";
import { isLeaseHeld } from "../db/queries/leases.ts";
import {
  beginListPass,
  type ListPass,
  type PassResult,
  readListPass,
  recordListPage,
  rejectListToken,
} from "../db/queries/list-passes.ts";
import { readSearchedHours } from "../db/queries/search-coverage.ts";
import { type StoredPage, storePage } from "../db/queries/store-page.ts";
import type { Clock } from "../src/clock.ts";
import { DAY_MS, firstListedDay, startOfDay, toDay } from "../src/coverage/horizon.ts";
import { isBackfilled } from "../src/coverage/plan-search.ts";
import type { EdgeClient } from "../src/edge/edge-client.ts";
import { EdgeError } from "../src/edge/edge-error.ts";
import type { IngestObserver } from "../src/ingest/ingest-observer.ts";
import { isPassedNews, planPass } from "../src/ingest/plan-pass.ts";
import type { DigestListPage } from "../src/list-page-workers.ts";
import type { Log } from "../src/log.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";
import { pollLeaseName } from "./poll-events.ts";
import { type ReadyListPage, readListPages } from "./read-list-pages.ts";

const LEASE_TTL_MS = 60_000;
/** So many pages in a row that were empty or seen before in the pass: its tokens lead nowhere. */
const MAX_STALLED_PAGES = 20;
/** A pass that began so long ago and stands at a page that fails is begun again. */
const STUCK_AFTER_MS = 3_600_000;

export interface WalkDaysDeps {
  readonly database: Database;
  readonly partitions: PartitionKeeper;
  readonly edge: Pick<EdgeClient, "readEventLogs">;
  readonly digestListPage: DigestListPage;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: IngestObserver;
  /** Until when an event may still appear after its time. */
  readonly settleMs: number;
  /** Full passes over one day begin this far apart. */
  readonly fullEveryMs: number;
  /** Told after each page that changed something. */
  readonly afterPage: () => unknown;
}

/**
 * Reads the date-paged list of one zone, oldest day first, and stores what the search has not: new events, and every
 * record byte for byte. One page is one transaction with its ledger entry and the cursor, so a killed pass goes on
 * where it stood; a lease per day keeps a second runner away and its fence keeps a late one from committing.
 */
export function createWalkDaysJob(deps: WalkDaysDeps): AnyJob {
  return defineJob({
    name: "walk-days",
    queue: "ingest",
    payload: z.strictObject({ zoneId: z.int() }),
    attempts: 3,
    timeoutMs: 600_000,
    run: ({ zoneId }, signal) => walkDays(deps, zoneId, signal),
  });
}

/** A day that cannot be read, such as one the platform has just forgotten, does not keep the others from being read. */
async function walkDays(deps: WalkDaysDeps, zoneId: number, signal: AbortSignal): Promise<void> {
  const now = deps.clock();
  const failures: unknown[] = [];
  for (let dayStart = firstListedDay(now); dayStart <= startOfDay(now); dayStart += DAY_MS) {
    if (signal.aborted) return;
    if (await isSearchedFirst(deps, zoneId, dayStart)) continue;
    const name = `walk-days.${zoneId}.${toDay(dayStart)}`;
    try {
      await holdLease(deps.database, { name, ttlMs: LEASE_TTL_MS }, (lease) =>
        walkDay(deps, { zoneId, dayStart, lease }, AbortSignal.any([signal, lease.lost])),
      );
    } catch (thrown) {
      failures.push(thrown);
      if (thrown instanceof EdgeError && thrown.disposition === "wait") break;
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** An event is written once if the search, which knows every dimension, comes first; so its backfill is left to end. */
async function isSearchedFirst({ database, clock }: WalkDaysDeps, zoneId: number, dayStart: number) {
  const now = clock();
  const hours = await readSearchedHours(database.db, zoneId, { fromMs: dayStart, toMs: dayStart + DAY_MS });
  const isSearched = isBackfilled(now, hours, { fromMs: dayStart, toMs: dayStart + DAY_MS });
  return !isSearched && (await isLeaseHeld(database.db, pollLeaseName(zoneId)));
}

interface Day {
  readonly zoneId: number;
  readonly dayStart: number;
  readonly lease: HeldLease;
}

async function walkDay(deps: WalkDaysDeps, day: Day, signal: AbortSignal): Promise<void> {
  const { database, clock, log } = deps;
  const { zoneId, dayStart, lease } = day;
  const name = toDay(dayStart);
  const state = await readListPass(database.db, zoneId, name);
  const hours = await readCoveredHours(database.db, zoneId, { fromMs: dayStart, toMs: dayStart + DAY_MS });
  const unsealed = hours.filter((hour) => hour.state === "open");
  const plan = planPass(clock(), { dayStart, unsealed }, state, deps);
  if (plan === null) return;
  const pass =
    plan === "resume" && state !== null
      ? state
      : await beginListPass(database.db, zoneId, name, { fence: lease.fence, startedAt: clock() });
  try {
    const ended = await walkPass(deps, day, { pass, mayStop: plan === "short" }, signal);
    if (ended !== null && (ended.newEntries > 0 || ended.passResult !== "short")) {
      const { pagesSeen: pages, newEntries, passResult } = ended;
      log.info({ zoneId, day: name, pass: pass.pass, pages, newEntries, passResult }, "list pass ended");
    }
  } catch (thrown) {
    if (signal.aborted) return;
    if (!(await isTokenRefusal(deps, day, thrown))) throw thrown;
    log.warn({ zoneId, day: name, pass: pass.pass }, "continuation token refused, pass begins again");
  }
}

/**
 * A refusal of any other page than the first is the token's: the next run begins at the first page. How the platform
 * refuses a token is not documented; where it answers an error that usually passes, an hour is enough. A page that is
 * too large stays so.
 */
async function isTokenRefusal(
  { database: { db }, clock }: WalkDaysDeps,
  { zoneId, dayStart, lease }: Day,
  thrown: unknown,
) {
  if (!(thrown instanceof EdgeError) || thrown.code === "EDGE_BODY_TOO_LARGE") return false;
  const pass = await readListPass(db, zoneId, toDay(dayStart));
  if (pass === null || pass.continuationToken === null) return false;
  const isStuck = thrown.disposition === "retry" && clock() - pass.startedAt >= STUCK_AFTER_MS;
  if (thrown.disposition !== "give-up" && !isStuck) return false;
  await rejectListToken(db, zoneId, toDay(dayStart), { pass: pass.pass, fence: lease.fence });
  return true;
}

interface WalkedPass {
  readonly pass: ListPass;
  readonly mayStop: boolean;
}

/** Returns the pass as it ended, or null when the signal ended it before that. */
async function walkPass(
  deps: WalkDaysDeps,
  day: Day,
  { pass, mayStop }: WalkedPass,
  signal: AbortSignal,
): Promise<ListPass | null> {
  const { observer } = deps;
  const { zoneId, dayStart } = day;
  const { continuationToken } = pass;
  const seenPages = new Set<string>();
  let stalledPages = 0;
  let current = pass;
  let expectNew = false;
  let previous: { firstAt: number | null } = { firstAt: null };
  let earliestNew: number | null = null;
  for await (const page of readListPages(deps, { zoneId, dayStart, continuationToken }, signal)) {
    const { entries, size, firstAt } = page.content;
    const pageHash = page.content.hash.toString("hex");
    stalledPages = entries === 0 || seenPages.has(pageHash) ? stalledPages + 1 : 0;
    seenPages.add(pageHash);
    const walked = await storeListPage(deps, day, { current, page, expectNew }, (newEntries) => {
      if (page.looped || stalledPages > MAX_STALLED_PAGES) return "looped";
      if (page.nextToken === null) return "full";
      const isNews = { ...page.content, newEntries };
      return mayStop && isPassedNews(isNews, previous, { earliestNew }) ? "short" : null;
    });
    const { stored } = walked;
    current = walked.pass;
    expectNew = size > 0 && stored.inserted === size;
    if (stored.inserted > 0 && firstAt !== null) {
      earliestNew = Math.min(earliestNew ?? Number.POSITIVE_INFINITY, firstAt);
    }
    previous = { firstAt };
    observer.pageStored({ route: "list", zoneId, entries, ...stored, bytes: page.bytes });
    if (stored.inserted + stored.filled > 0) deps.afterPage();
    if (current.passResult !== null) return current;
    if (signal.aborted) return null;
  }
  return null;
}

interface WalkedPage {
  readonly current: ListPass;
  readonly page: ReadyListPage;
  readonly expectNew: boolean;
}

async function storeListPage(
  deps: WalkDaysDeps,
  { zoneId, dayStart, lease }: Day,
  { current, page, expectNew }: WalkedPage,
  resultOf: (newEntries: number) => PassResult | null,
): Promise<{ pass: ListPass; stored: StoredPage }> {
  const { database, partitions, clock } = deps;
  const { content, isKnown, rawBlocks } = page;
  const day = toDay(dayStart);
  const conclude = (tx: Queryable, stored: StoredPage) =>
    recordListPage(tx, current, lease.fence, {
      zoneId,
      day,
      entries: content.entries,
      newEntries: stored.inserted,
      hash: content.hash,
      tokenHash: page.token === null ? null : hash("sha256", page.token, "buffer"),
      firstAt: content.firstAt,
      lastAt: content.lastAt,
      nextToken: page.nextToken,
      passResult: resultOf(stored.inserted),
    });
  const events = isKnown ? { ...content, size: 0 } : content;
  const quarantined = isKnown ? [] : content.quarantined;
  const newPage = { zoneId, lease, expectNew, storedAt: clock(), events, rawBlocks, quarantined };
  const { stored, concluded } = await partitions.withDays(content.days, () =>
    storePage(database, newPage, conclude),
  );
  return { pass: concluded, stored };
}
