import { z } from "zod";
import { readArchivedDays } from "#db/archive/archived-days.ts";
import { beginListPass, breakListPass, type ListPass, readListPass } from "#db/ingest/list-passes.ts";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { isLeaseTaken } from "#db/postgres/leases.ts";
import { readCoveredHours } from "#db/proof/covered-hours.ts";
import { readKeptMs } from "#db/proof/horizons.ts";
import { planPass } from "#ingest/rules/plan-pass.ts";
import { formatWhole } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { firstListedDay, horizonAt, startOfDay, toDay } from "#model/horizon.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { MAX_TOKEN_BYTES } from "#platform/transport/call.ts";
import { isBackfilled } from "#proof/rules/plan-search.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import { judgeRoute, recordListLooks } from "../proof/judge-route.ts";
import { pollLeaseName } from "./poll-events.ts";
import { type DayToWalk, type EndedPass, type WalkDayDeps, walkPass } from "./walk-pass.ts";

/** A pass that began longer ago than this and fails at a page begins again. */
const STUCK_AFTER_MS = 3_600_000;
/** How long a successor waits for the lease of a killed runner. The fence, not the lease, separates the two. */
const LEASE_TTL_MS = 15_000;

export interface WalkDaysDeps extends WalkDayDeps {
  /** How long after its time an event may still appear. */
  readonly settleMs: number;
  /** Interval between the starts of full passes over one day while an hour waits for one. */
  readonly fullEveryMs: number;
  /** Interval between the starts of full passes over today while no hour waits for one. */
  readonly idleFullEveryMs: number;
  /** Interval between the starts of short passes over today while they bring nothing new. */
  readonly shortEveryMs: number;
}

/**
 * Reads the date-paged list of one zone, oldest day first, and stores what the search has not: new events, and every
 * record byte for byte. Each page is stored with its ledger entry and the cursor in one transaction, so a killed pass
 * resumes where it stopped. A lease per day keeps a second runner away, and its fence keeps a late one from
 * committing.
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

/** Walks the days. A failed day, such as one that the platform has just forgotten, does not stop the others. */
async function walkDays(deps: WalkDaysDeps, zoneId: number, signal: AbortSignal) {
  const { database } = deps;
  const now = deps.clock();
  const keptMs = await readKeptMs(database.db, zoneId, now);
  const listed = { fromMs: firstListedDay(now), toMs: startOfDay(now) + DAY_MS };
  let hours: readonly CoveredHour[] | null = null;
  const failures: unknown[] = [];
  let walked = 0;
  for (let dayStart = listed.fromMs; dayStart < listed.toMs; dayStart += DAY_MS) {
    if (signal.aborted) return undefined;
    hours ??= await readCoveredHours(database.db, zoneId, listed);
    const day = { zoneId, dayStart, keptMs };
    if (await isSearchedFirst(deps, day, hours)) continue;
    // Most days need no pass, so the lease is taken only for a day that seems to need one.
    if ((await planDay(deps, day, hours)).plan === null) continue;
    if (await isArchived(deps, zoneId, dayStart)) continue;
    const name = walkLeaseName(zoneId, dayStart);
    try {
      const result = await holdLease(database, { name, ttlMs: LEASE_TTL_MS }, (lease) =>
        walkIfDue(deps, { ...day, lease }, AbortSignal.any([signal, lease.lost])),
      );
      if (result !== null) walked += 1;
    } catch (thrown) {
      failures.push(thrown);
      if (thrown instanceof EdgeError && thrown.disposition === "wait") break;
    }
    // A walk takes a while, and meanwhile the search may have finished the next day.
    hours = null;
  }
  if (failures.length > 0) throw failures[0];
  return walked === 0 ? "no day needs a pass" : undefined;
}

interface Day {
  readonly zoneId: number;
  readonly dayStart: number;
  /** How long the platform keeps the zone's events. */
  readonly keptMs: number;
}

/**
 * Returns whether the search has yet to finish its backfill of the day. An event is written only once if the search,
 * which knows every dimension, comes first.
 */
async function isSearchedFirst(
  { database, clock }: WalkDaysDeps,
  { zoneId, dayStart, keptMs }: Day,
  hours: readonly CoveredHour[],
): Promise<boolean> {
  const isSearched = isBackfilled(clock(), hours, { fromMs: dayStart, toMs: dayStart + DAY_MS, keptMs });
  return !isSearched && (await isLeaseTaken(database.db, pollLeaseName(zoneId)));
}

/**
 * Returns whether the day is in the archive, which nothing can be added to: every entry of a pass would be quarantined. Of
 * the days that are listed, only the demo's `--archive-after` archives one.
 */
async function isArchived(
  { database, clock }: WalkDaysDeps,
  zoneId: number,
  dayStart: number,
): Promise<boolean> {
  if (dayStart >= startOfDay(clock())) return false;
  return (await readArchivedDays(database.db, zoneId, { from: dayStart, to: dayStart + 1 })).length > 0;
}

/** Returns the pass that the day needs now, null if none, and the state of its latest pass. */
async function planDay(deps: WalkDaysDeps, { zoneId, dayStart, keptMs }: Day, hours: readonly CoveredHour[]) {
  const now = deps.clock();
  const state = await readListPass(deps.database.db, zoneId, toDay(dayStart));
  const askable = hours.filter(
    ({ startsAt, state: of }) =>
      startOfDay(startsAt) === dayStart && of !== "gap" && startsAt >= horizonAt(now, keptMs),
  );
  return { plan: planPass(now, { dayStart, hours: askable }, state, deps), state };
}

async function walkIfDue(
  deps: WalkDaysDeps,
  day: Day & { readonly lease: OwnedLease },
  signal: AbortSignal,
): Promise<void> {
  const { database, log } = deps;
  const { zoneId, dayStart } = day;
  const name = toDay(dayStart);
  const range = { fromMs: dayStart, toMs: dayStart + DAY_MS };
  const { plan, state } = await planDay(deps, day, await readCoveredHours(database.db, zoneId, range));
  if (plan === null) return;
  const ended = await walkDay(deps, day, { plan, state }, signal);
  if (ended !== null && (ended.newEntries > 0 || ended.passResult !== "short")) {
    const { pass, pagesSeen: pages, newEntries, passResult } = ended;
    log.debug({ zoneId, day: name, pass, pages, newEntries, passResult }, "list pass ended");
  }
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
