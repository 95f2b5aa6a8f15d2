/** Plans which days and zones are read next, and how much of each. */

import { hash } from "node:crypto";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { agreedFor, type CoveredHour } from "#model/covered-hour.ts";
import { listedUntil } from "#model/horizon.ts";
import type { PassResult } from "#model/kinds.ts";
import type { RisingZone } from "#model/zones.ts";
import { AGREE_LONG_MS, isValidLook, settledAt } from "#proof/rules/hour-proof.ts";

/** A day gets one more full pass this long after its end, for entries that appeared late. */
const SECOND_PASS_MS = 6 * HOUR_MS;
/**
 * How long before a day leaves the list its last pass begins. That leaves time to prove the hours of late entries again
 * before the platform forgets them.
 */
const LAST_PASS_MS = 6 * HOUR_MS;

/**
 * The share of the interval between full passes after which a day is passed again if its hours are proven anew, or if its
 * pass was held back.
 */
const AGAIN_SHARE = 1 / 3;

export interface PassState {
  /** Start of the pass of `passResult`. */
  readonly startedAt: number;
  /** Start of the latest full pass that reached the end. */
  readonly fullPassStartedAt: number | null;
  /** Start of the latest full pass that found nothing new. */
  readonly quietPassStartedAt: number | null;
  /** Events that the pass has stored as new. */
  readonly newEntries: number;
  /** Null while the pass runs. */
  readonly passResult: PassResult | null;
}

interface PassPolicy {
  /** How long after its time an event may appear. */
  readonly settleMs: number;
  /** Minimum interval between the starts of full passes of one day that can prove something. */
  readonly fullEveryMs: number;
  /**
   * Minimum interval between full passes over today while no hour waits for one. Such passes only look for late
   * entries.
   */
  readonly idleFullEveryMs: number;
  /** Minimum interval between short passes while the list shows nothing that the search has not shown before. */
  readonly shortEveryMs: number;
}

interface PassedDay {
  /** Epoch ms. */
  readonly dayStart: number;
  /** The day's hours with a row that are no gap. */
  readonly hours: readonly CoveredHour[];
}

/**
 * Returns which pass a day needs now: `resume` the running one, a `full` one from the first page to the end, a
 * `short` one over the newest pages, or none. Short passes are rarer while the search is current and the list brings
 * nothing new. A day is done when a full pass without new entries began after the day had settled, and no hour of it needs the list
 * once more. Two more full passes, one six hours after the day and one shortly before the day leaves the list, find
 * entries that appeared late. A pass whose token was refused begins again at once. One that looped waits for its next
 * time, because it would loop again. One that was held back waits for a third of that.
 */
export function planPass(
  now: number,
  { dayStart, hours }: PassedDay,
  state: PassState | null,
  { settleMs, fullEveryMs, idleFullEveryMs, shortEveryMs }: PassPolicy,
): "resume" | "full" | "short" | null {
  if (state === null) return "full";
  const { startedAt, fullPassStartedAt, quietPassStartedAt, passResult } = state;
  if (passResult === null) return "resume";
  const dayEndsSettledAt = dayStart + DAY_MS + settleMs;
  const isProven = hours.every((hour) => !needsList(now, hour, settleMs));
  if (isProven && quietPassStartedAt !== null && quietPassStartedAt >= dayEndsSettledAt) {
    const onceMoreAt = [dayStart + DAY_MS + SECOND_PASS_MS, listedUntil(dayStart) - LAST_PASS_MS];
    const isDue = onceMoreAt.some((at) => at <= now && (fullPassStartedAt ?? 0) < at);
    return isDue && now - startedAt >= fullEveryMs ? "full" : null;
  }
  if (passResult === "held") return now - startedAt >= fullEveryMs * AGAIN_SHARE ? "full" : null;
  if (passResult === "looped") return now - startedAt >= fullEveryMs ? "full" : null;
  if (passResult === "token_rejected" || fullPassStartedAt === null) return "full";
  const hasSettled = (hour: CoveredHour) => settledAt(hour, settleMs) <= now;
  const isWaitedFor = hours.some((hour) => hasSettled(hour) && needsList(now, hour, settleMs));
  const again = hours.filter((hour) => hour.proofFrom !== null && needsList(now, hour, settleMs));
  // After a lie of the platform many hours wait for the list only.
  const isAgain = again.some(hasSettled);
  // An hour that runs needs the list only if records of it are missing.
  const isUnrecorded = again.some((hour) => !hasSettled(hour) && !isValidLook(hour.looks.list, hour, 0));
  const isIdle = hours.length > 0 && now < dayEndsSettledAt && !isWaitedFor && !isUnrecorded;
  const everyMs = isAgain ? fullEveryMs * AGAIN_SHARE : fullEveryMs;
  if (now - fullPassStartedAt >= (isIdle ? idleFullEveryMs : everyMs)) return "full";
  if (now >= dayEndsSettledAt) return null;
  const isDue = state.newEntries > 0 || !isSearched(hours, startedAt) || now - startedAt >= shortEveryMs;
  return isDue ? "short" : null;
}

/**
 * Returns whether the search has advanced since `at`. The list then adds raw records, and events only if the search
 * missed some.
 */
function isSearched(hours: readonly CoveredHour[], at: number): boolean {
  return hours.some(({ searchedThrough }) => searchedThrough !== null && searchedThrough > at);
}

/**
 * Returns whether a full pass could help to seal an hour: the list was not read since the hour settled and last gained
 * an event, or its looks have not agreed for long enough on what it does not show.
 */
function needsList(now: number, hour: CoveredHour, settleMs: number): boolean {
  const { state, looks, lastNewAt, missingCells, storedCount } = hour;
  const { list } = looks;
  if (state === "sealed") return false;
  if (!isValidLook(list, hour, settledAt(hour, settleMs)) || missingCells > 0) return true;
  if (lastNewAt !== null && lastNewAt >= list.at) return true;
  if (storedCount === 0 && list.count === 0)
    return agreedFor(list) < AGREE_LONG_MS && now >= list.since + AGREE_LONG_MS;
  return list.count + (list.unlisted?.count ?? 0) !== storedCount && agreedFor(list) < AGREE_LONG_MS;
}

interface PassTimes {
  /** Earliest time of an event that this pass has stored as new; null while there is none. */
  readonly earliestNew: number | null;
  /** Entries since this time may have appeared after the pass before; epoch ms. */
  readonly lateFrom: number;
}

/**
 * Returns whether a short pass may stop: a page brought nothing new and lies wholly before everything that the pass
 * stored, and before every entry that may be late. If pages come oldest first, that never happens and the pass runs to the
 * end.
 */
export function isPassedNews(
  page: { newEntries: number; lastAt: number | null; firstAt: number | null },
  before: { firstAt: number | null },
  { earliestNew, lateFrom }: PassTimes,
): boolean {
  if (page.newEntries > 0 || page.lastAt === null || page.lastAt >= lateFrom) return false;
  if (earliestNew !== null) return page.lastAt < earliestNew;
  // The pass found nothing new at all. It may stop only if its pages are known to come newest first.
  return before.firstAt !== null && page.lastAt <= before.firstAt;
}

interface PageTimes {
  /** Epoch ms; null on a page without entries. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
}

interface PageOrder {
  /** Adds the next page of the pass. */
  add(page: PageTimes): void;
  /** Returns whether the pages of the pass came oldest first. One page alone shows no order. */
  isOldestFirst(): boolean;
}

/**
 * Observes in which order a pass shows its pages. Late entries may make a page begin before the page before it ended,
 * so only the pages' ends have to rise. `isKnown`: earlier passes have shown that the list comes oldest first, and the
 * pass began at its last page. It then needs no second page, but a page that goes back changes the result.
 */
export function watchPageOrder(isKnown: boolean): PageOrder {
  let before: number | null = null;
  let hasRisen = isKnown;
  let hasFallen = false;
  return {
    add({ firstAt, lastAt }) {
      if (firstAt === null || lastAt === null) return;
      if (before !== null && lastAt < before) hasFallen = true;
      if (before !== null && lastAt > before) hasRisen = true;
      before = lastAt;
    },
    isOldestFirst: () => hasRisen && !hasFallen,
  };
}

/** The newest minutes of a rising zone are searched again when they are older than this. */
export const RISING_FRESH_MS = 5_000;

const PAGE_EVENTS = 500;

/**
 * Returns the zones to poll now, of those in which something rises, in their order. A zone that was searched just now is
 * left out. A zone with more events than the requests that are left can read is polled by its tick only, so that it
 * takes nothing from the other zones and the proof.
 */
export function pickRising(zones: readonly RisingZone[], nowMs: number, mostRequests: number): number[] {
  let left = mostRequests;
  return zones.flatMap(({ zoneId, searchedThroughMs, events }) => {
    const requests = 1 + Math.floor(events / PAGE_EVENTS);
    if (requests > left || nowMs - (searchedThroughMs ?? 0) < RISING_FRESH_MS) return [];
    left -= requests;
    return [zoneId];
  });
}

/** A zone with more rows than this in its newest minutes has news at every poll, so that its rows are not remembered. */
const MOST_ROWS = 5_000;

/** Rows of searches that are stored: for each log id the hash of its bytes. */
export type KnownRows = Map<string, string>;

/** Returns which rows are stored byte for byte, by the places of the others, and whether one of those has a known id. */
export function findNews(
  known: KnownRows,
  rows: readonly unknown[],
  raws: readonly Buffer[],
): { readonly places: readonly number[]; readonly hasKnownId: boolean } {
  let hasKnownId = false;
  const places = [...raws.entries()].flatMap(([place, raw]) => {
    const hashed = hashRow(raw);
    const before = known.get(idOf(rows[place]) ?? hashed);
    if (before !== undefined && before !== hashed) hasKnownId = true;
    return before === hashed ? [] : [place];
  });
  return { places, hasKnownId };
}

/** Remembers rows that were stored. Returns false if they are too many. */
export function rememberRows(known: KnownRows, rows: readonly unknown[], raws: readonly Buffer[]): boolean {
  if (known.size + raws.length > MOST_ROWS) return false;
  for (const [place, raw] of raws.entries()) {
    const hashed = hashRow(raw);
    known.set(idOf(rows[place]) ?? hashed, hashed);
  }
  return true;
}

function hashRow(raw: Buffer): string {
  return hash("sha1", raw, "base64");
}

/** Returns null for a row that is no event: its hash stands for it. */
function idOf(row: unknown): string | null {
  const { logId } = (row ?? {}) as { logId?: unknown };
  return typeof logId === "string" ? logId : null;
}
