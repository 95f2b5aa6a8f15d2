import { hash } from "node:crypto";
import type { Queryable } from "#db/client.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import {
  beginListPass,
  breakListPass,
  type ListPass,
  readListPass,
  recordListPage,
} from "#db/ingest/list-passes.ts";
import { noteWrongTimes } from "#db/ingest/merge-doubles.ts";
import { wasQuarantined } from "#db/ingest/quarantine.ts";
import { type StoredPage, storePage } from "#db/ingest/store-page.ts";
import { isPassedNews, watchPageOrder } from "#ingest/rules/plan-pass.ts";
import { BELIEVE_AFTER_MS, HELD_BACK, OUTSIDE_DAY, toHeldBack } from "#ingest/rules/read-page.ts";
import { formatWhole } from "#lib/format.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import type { PassResult } from "#model/kinds.ts";
import { daysOf } from "#model/waf-event.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { MAX_TOKEN_BYTES } from "#platform/transport/call.ts";
import { SETTLE_MS } from "#proof/rules/hour-proof.ts";
import type { JobContext } from "../context.ts";
import { judgeRoute, recordListLooks } from "../proof/judge-route.ts";
import { type ReadListPage, readListPages } from "./store-entries.ts";

/**
 * After this many pages in a row that were empty or seen before in the pass, the pass ends: its tokens lead nowhere.
 */
const MAX_STALLED_PAGES = 20;
/** A pass that began longer ago than this and fails at a page begins again. */
const STUCK_AFTER_MS = 3_600_000;

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
  /** Runs in the transaction of each page as well. */
  readonly conclude?: (tx: Queryable, page: StoredPage) => Promise<unknown>;
}

export interface EndedPass extends ListPass {
  /** Entries that belong to another day. */
  readonly outsideDay: number;
  /** Entries that could not be read. */
  readonly unreadable: number;
  /** True if a page shows events that are known, or no route shows nothing of these. */
  readonly isRecognised: boolean;
}

/** Returns the name of the lease for walking this day (start in epoch ms). */
export function walkLeaseName(zoneId: number, dayStart: number): string {
  return `walk-days.${zoneId}.${toDay(dayStart)}`;
}

/**
 * Walks one pass over a day's list, or the rest of one. If earlier passes showed that the list comes oldest first, a
 * short pass begins at the list's last pages, among which late entries appear. Each page is stored with its ledger
 * entry and the cursor in one transaction, so a killed pass resumes where it stopped. A full pass is stored as a look at
 * each of its hours. Returns the pass as it ended. Returns null when the signal ended it before that, or when its token was
 * refused and it has to begin again.
 */
export async function walkDay(
  deps: WalkDayDeps,
  day: DayToWalk,
  { plan, state }: { plan: "resume" | "full" | "short"; state: ListPass | null },
  signal: AbortSignal,
): Promise<EndedPass | null> {
  const { database, clock, log } = deps;
  const { zoneId, dayStart, lease } = day;
  const name = toDay(dayStart);
  const pass =
    plan === "resume" && state !== null
      ? state
      : await beginListPass(database.db, zoneId, name, {
          fence: lease.fence,
          startedAt: clock(),
          atTail: plan === "short",
        });
  try {
    const ended = await walkPass(deps, day, { pass, mayStop: plan === "short" }, signal);
    if (ended !== null && (await isTrusted(deps, day, ended)) && ended.passResult === "full")
      await recordListLooks(database, day, ended);
    return ended;
  } catch (thrown) {
    if (signal.aborted) return null;
    if (!(await isTokenRefusal(deps, day, thrown))) throw thrown;
    log.warn({ zoneId, day: name, pass: pass.pass }, "continuation token refused, pass restarted");
    return null;
  }
}

/** Judges the list by an ended pass. Returns whether the pass is a look at its hours. */
async function isTrusted(
  deps: WalkDayDeps,
  { zoneId, dayStart }: DayToWalk,
  { startedAt, passResult, outsideDay, isRecognised }: EndedPass,
): Promise<boolean> {
  const look = { zoneId, route: "list" as const, atMs: startedAt };
  const day = toDay(dayStart);
  if (passResult === "held") {
    const reason = `The list of ${day} shows a page with none of the events that are known of its time.`;
    return !(await judgeRoute(deps, { ...look, contradiction: { reason, isWhole: true } }));
  }
  if (outsideDay > 0) {
    const reason = `The list of ${day} shows ${outsideDay} events of other days.`;
    return !(await judgeRoute(deps, { ...look, contradiction: { reason, isWhole: false } }));
  }
  if (passResult === "full" && isRecognised) await judgeRoute(deps, { ...look, contradiction: null });
  return true;
}

/**
 * Returns whether a refusal means that the token is rejected. A refusal of any page but the first counts as that, and
 * the next run begins at the first page. How the platform refuses a token is not documented. An error that usually
 * passes counts after an hour. A page that is too large stays too large. A token that cannot be sent makes the list
 * suspect, because no pass can reach the end.
 */
async function isTokenRefusal(deps: WalkDayDeps, { zoneId, dayStart, lease }: DayToWalk, thrown: unknown) {
  const {
    database: { db },
    clock,
  } = deps;
  if (!(thrown instanceof EdgeError) || thrown.code === "EDGE_BODY_TOO_LARGE") return false;
  const pass = await readListPass(db, zoneId, toDay(dayStart));
  if (pass === null || pass.continuationToken === null) return false;
  const isStuck = thrown.disposition === "retry" && clock() - pass.startedAt >= STUCK_AFTER_MS;
  if (thrown.disposition !== "give-up" && !isStuck) return false;
  const passResult = "token_rejected";
  const day = toDay(dayStart);
  await breakListPass(db, zoneId, day, { pass: pass.pass, fence: lease.fence, passResult });
  if (thrown.code === "EDGE_INVALID_REQUEST") {
    const [bytes, most] = [Buffer.byteLength(pass.continuationToken), MAX_TOKEN_BYTES].map(formatWhole);
    const reason = `The list of ${day} goes on with a continuation token of ${bytes} bytes, which cannot be sent. Longwatch sends well-formed tokens of at most ${most} bytes.`;
    const contradiction = { reason, isWhole: false };
    await judgeRoute(deps, { zoneId, route: "list", atMs: pass.startedAt, contradiction });
  }
  return true;
}

interface WalkedPass {
  readonly pass: ListPass;
  readonly mayStop: boolean;
}

/** Returns the pass as it ended, or null when the signal ended it before that. */
async function walkPass(
  deps: WalkDayDeps,
  day: DayToWalk,
  { pass, mayStop }: WalkedPass,
  signal: AbortSignal,
): Promise<EndedPass | null> {
  const { database, clock, observer } = deps;
  const { zoneId, dayStart } = day;
  const { continuationToken } = pass;
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
  for await (const page of readListPages(deps, { zoneId, dayStart, continuationToken }, signal)) {
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
  { zoneId, dayStart, lease, conclude: concludeMore }: DayToWalk,
  { current, page, expectNew }: WalkedPage,
  endOf: (newEntries: number) => { passResult: PassResult | null; tailToken: string | null },
): Promise<{ pass: ListPass; stored: StoredPage }> {
  const { database, partitions, clock, erasures } = deps;
  const { entries, hash: pageHash, firstAt, lastAt, hours, nextToken, rawBlocks } = page;
  const day = toDay(dayStart);
  const conclude = async (tx: Queryable, stored: StoredPage) => {
    const recorded = await recordListPage(tx, current, lease.fence, {
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
    await concludeMore?.(tx, stored);
    return recorded;
  };
  const { events, quarantined } = page.isKnown ? NOTHING_NEW : page;
  const newPage = { zoneId, lease, expectNew, storedAt: clock(), events, rawBlocks, quarantined, erasures };
  const { stored, concluded } = await partitions.withDays(daysOf(events), () =>
    storePage(database, newPage, conclude),
  );
  return { pass: concluded, stored };
}

const NOTHING_NEW = { events: [], quarantined: [] };
