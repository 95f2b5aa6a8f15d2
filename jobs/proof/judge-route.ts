/** Judges what a route showed, and watches the search for contradictions. */

import type { Database, Queryable } from "#db/client.ts";
import { type ListPass, readPassHours } from "#db/ingest/list-passes.ts";
import { readMovedIds } from "#db/ingest/merge-doubles.ts";
import { noteLacking } from "#db/ingest/revise-events.ts";
import { assertFence } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { lockLooks, readCoveredHours, writeLooks } from "#db/proof/covered-hours.ts";
import { readFeatureIds, readHourIds, readKnownIds, readOneHour } from "#db/proof/hour-contents.ts";
import { clearSuspicion, noteSuspicion, readSuspicions } from "#db/proof/platform-health.ts";
import { reopenHours } from "#db/proof/reopen-hours.ts";
import { joinPageHours } from "#ingest/rules/read-page.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { type HourLooks, type LookLacks, nextLook } from "#model/covered-hour.ts";
import { horizonAt, toDay } from "#model/horizon.ts";
import type { LookRoute } from "#model/kinds.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { KNOWN_EVENTS } from "#proof/rules/compare-counts.ts";
import { AGREE_LONG_MS } from "#proof/rules/hour-proof.ts";
import { digestIds, findUnlisted, moveIds, NO_IDS } from "#proof/rules/id-digest.ts";
import type { JobContext } from "../context.ts";

type JudgeRouteDeps = Pick<JobContext, "database" | "log">;

/** Reason why answers of a route prove nothing. */
export interface Contradiction {
  /** A sentence for people. */
  readonly reason: string;
  /** True if the route shows nothing of what is known of the zone. */
  readonly isWhole: boolean;
}

interface RouteLook {
  readonly zoneId: number;
  readonly route: LookRoute;
  /** When the look began; epoch ms. */
  readonly atMs: number;
  readonly contradiction: Contradiction | null;
}

/**
 * Marks a route as suspect if its look contradicts what is known, and clears it if the look does not. Returns whether
 * the look has to be held back: for an hour from the first contradiction on, the look proves nothing. After that hour it
 * does, because every look of the hour agreed. Several replicas may run this at once.
 */
export async function judgeRoute({ database, log }: JudgeRouteDeps, look: RouteLook): Promise<boolean> {
  const { contradiction, ...at } = look;
  const { zoneId, route, atMs } = at;
  if (contradiction === null) {
    if (await clearSuspicion(database.db, at)) log.info({ zoneId, route }, "route stopped being suspect");
    return false;
  }
  const since = await noteSuspicion(database.db, at, contradiction);
  if (since === atMs) log.warn({ zoneId, route, reason: contradiction.reason }, "route became suspect");
  return atMs - since < AGREE_LONG_MS;
}

/**
 * Returns whether one of these routes shows nothing of what is known, so that an answer is believed only if it shows an
 * event that is known. Every poll asks the search anew, so its suspicion is never old. That of the list may be.
 */
export async function isZoneSuspect(
  db: Queryable,
  zoneId: number,
  routes: readonly LookRoute[],
): Promise<boolean> {
  const suspicions = await readSuspicions(db, [zoneId]);
  return suspicions.some(({ isWhole, route }) => isWhole && routes.includes(route));
}

/** Most answers show one of the first events of their time, so that no more have to be read. */
const SAMPLE = 50;

/** The ids that an answer shows, and the time that it covers; epoch ms, both ends included. */
interface Answer {
  readonly fromMs: number;
  readonly toMs: number;
  /** Only events that the search has shown are compared. */
  readonly isResolved: boolean;
  readonly shows: (logId: string) => boolean;
}

/**
 * `known`: the answer shows an event that is stored. `unknown`: it shows none of at least five, so the platform answers
 * nothing or another zone's events. `neutral`: too few events are stored in its time.
 */
export type Recognition = "known" | "unknown" | "neutral";

export async function recogniseAnswer(
  db: Queryable,
  zoneId: number,
  { isResolved, shows, ...span }: Answer,
): Promise<Recognition> {
  for (const limit of [SAMPLE, null]) {
    const ids = await readKnownIds(db, zoneId, span, { isResolved, limit });
    if (ids.some(shows)) return "known";
    if (ids.length < (limit ?? Number.POSITIVE_INFINITY))
      return ids.length >= KNOWN_EVENTS ? "unknown" : "neutral";
  }
  return "neutral";
}

interface PassedDay {
  readonly zoneId: number;
  readonly dayStart: number;
  readonly lease: { readonly name: string; readonly fence: number };
}

/**
 * Stores a full list pass as a look at every hour of its day that had begun and that the platform has not begun to
 * forget. An entry that the list shows in another hour than its event counts in the event's hour, if the hour then holds
 * as many events as are stored. A pass of which a page is missing stores nothing.
 */
export async function recordListLooks(
  database: Database,
  { zoneId, dayStart, lease }: PassedDay,
  { pass, startedAt, pagesSeen, unreadable }: ListPass & { readonly unreadable: number },
): Promise<void> {
  const pages = await readPassHours(database.db, zoneId, toDay(dayStart), pass);
  if (pages.length < pagesSeen) return;
  const shown = joinPageHours(pages);
  const hours: number[] = [];
  for (let hour = dayStart; hour < Math.min(dayStart + DAY_MS, startedAt); hour += HOUR_MS)
    if (hour >= horizonAt(startedAt)) hours.push(hour);
  await inTransaction(database, async ({ tx }) => {
    const before = await lockLooks(tx, zoneId, hours);
    const around = { fromMs: dayStart - DAY_MS, toMs: dayStart + 2 * DAY_MS };
    const moved = moveIds(shown, await readMovedIds(tx, zoneId, around));
    const covered = await readCoveredHours(tx, zoneId, around);
    const stored = new Map(covered.map(({ startsAt, storedCount }) => [startsAt, storedCount]));
    const after = new Map<number, HourLooks>();
    for (const hour of hours) {
      const looks = before.get(hour) ?? {};
      const asShown = shown.get(hour) ?? { count: 0, ids: NO_IDS };
      const asStored = moved.get(hour);
      // The list may have shown a second time once and the event's own since.
      const isMoved = asShown.count !== stored.get(hour) && asStored?.count === stored.get(hour);
      const { count, ids } = isMoved && asStored !== undefined ? asStored : asShown;
      const isShort = count > 0 && count < (stored.get(hour) ?? 0);
      const unlisted = isShort ? findUnlisted({ count, ids }, await readFeatureIds(tx, zoneId, hour)) : null;
      const seen = {
        at: startedAt,
        pages: pagesSeen,
        count,
        ids,
        ...(unlisted === null ? {} : { unlisted }),
        ...(unreadable === 0 ? {} : { unreadable }),
      };
      after.set(hour, { ...looks, list: nextLook(looks.list, seen) });
    }
    await writeLooks(tx, zoneId, after);
    await assertFence(tx, lease.name, lease.fence);
  });
}

/** Maximum number of log ids that a look names. */
const MAX_NAMED = 20;
const MAX_RULES = 200;

const MOVED = "The search shows an event of this hour at another time now.";

/** Collects the log ids that one search of an hour has shown and compares them with the stored events. */
interface SearchWatch {
  /** Adds the events of some pages. */
  readonly add: (events: readonly WafEvent[], pages: number) => void;
  /** Stores the search as a look at its hour, and notes the stored events that it did not show. */
  recordLook(tx: Queryable, zoneId: number, hour: LookedAtHour): Promise<void>;
}

interface LookedAtHour {
  readonly startsAt: number;
  /** When the search began, epoch ms. */
  readonly at: number;
  /** The hour's looks so far, locked in this transaction. */
  readonly looks: HourLooks;
}

export function createSearchWatch(): SearchWatch {
  const shown = new Map<string, number>();
  let pages = 0;
  return {
    add(events, read) {
      pages += read;
      for (const { logId, occurredAt } of events) shown.set(logId, occurredAt);
    },
    async recordLook(tx, zoneId, { startsAt, at, looks }) {
      const isIn = (time: number) => time >= startsAt && time < startsAt + HOUR_MS;
      const ids = [...shown].flatMap(([logId, time]) => (isIn(time) ? [logId] : []));
      const digest = digestIds(ids);
      const stored = await readOneHour(tx, zoneId, startsAt);
      const isExact = stored.count === ids.length && stored.ids === digest;
      const lacking = isExact ? [] : await readLacking(tx, zoneId, startsAt, new Set(ids));
      const noted = { startsAt, atMs: at, shown: ids, lacking: lacking.map(({ logId }) => logId) };
      const moved = await noteLacking(tx, zoneId, noted);
      await reopenHours(
        tx,
        zoneId,
        moved.map((hour) => ({ startsAt: hour, reason: MOVED })),
        at,
      );
      const seen = { at, pages, count: ids.length, ids: digest, ...toLacks(lacking) };
      await writeLooks(tx, zoneId, new Map([[startsAt, { ...looks, search: nextLook(looks.search, seen) }]]));
    },
  };
}

interface LackingEvent {
  readonly logId: string;
  readonly ruleId: string;
}

async function readLacking(
  tx: Queryable,
  zoneId: number,
  startsAt: number,
  shown: ReadonlySet<string>,
): Promise<LackingEvent[]> {
  const stored = await readHourIds(tx, zoneId, startsAt);
  const lacking = stored.flatMap((event) => (shown.has(event.logId) ? [] : [[event.logId, event] as const]));
  return [...new Map(lacking).values()];
}

function toLacks(lacking: readonly LackingEvent[]): { lacks?: LookLacks } {
  if (lacking.length === 0) return {};
  const logIds = lacking.map(({ logId }) => logId);
  const rules: Record<string, number> = {};
  for (const { ruleId } of lacking) rules[ruleId] = (rules[ruleId] ?? 0) + 1;
  return {
    lacks: {
      count: lacking.length,
      ids: logIds.slice(0, MAX_NAMED),
      digest: digestIds(logIds),
      // Above this number of rules the differences are not named, so they equal no others.
      rules: Object.keys(rules).length > MAX_RULES ? {} : rules,
    },
  };
}
