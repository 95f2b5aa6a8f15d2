import type { Database, Queryable } from "#db/client.ts";
import { readFirstEventMinutes, readSourceEvents } from "#db/detection/source-events.ts";
import {
  type AddressDays,
  addSourceHours,
  readSourceHours,
  readSourceUsual,
  type SourceHour,
  storeSourceHours,
} from "#db/detection/source-hours.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { LONGEST_WINDOW, WINDOW_COUNT } from "#detection/rules/detection-settings.ts";
import {
  countHour,
  createUsualRules,
  USUAL_DAYS,
  type UsualRules,
} from "#detection/rules/sources/usual-rules.ts";
import { HISTORY_HOURS } from "#detection/rules/thresholds/thresholds.ts";
import type { KnownSources } from "#model/known-source.ts";

/** Hours of one zone that are counted in one tick: while a backfill runs, they are marked again all the time. */
const HOURS_PER_TICK = 24;

/** How many hours may still be counted. */
export interface CountBudget {
  /** Returns whether to stop. One hour is counted in any case, so that every pass comes further. */
  readonly isOver: () => boolean;
  /** Hours that were counted in the tick, by zone. */
  readonly counted: Map<number, number>;
  hasCounted: boolean;
}

/** Returns whether the zone may have further hours counted in this tick. */
export function hasHoursLeft({ counted }: CountBudget, zoneId: number): boolean {
  return (counted.get(zoneId) ?? 0) < HOURS_PER_TICK;
}

function takeHour(budget: CountBudget, zoneId: number): boolean {
  if (!hasHoursLeft(budget, zoneId) || (budget.hasCounted && budget.isOver())) return false;
  budget.counted.set(zoneId, (budget.counted.get(zoneId) ?? 0) + 1);
  budget.hasCounted = true;
  return true;
}

/** Hours of a zone's history that are used. */
export interface HourPolicy {
  /** Returns whether events of the hour may be missing. */
  readonly isUnknownHour: (hour: number) => boolean;
  /** Hours of confirmed attacks: their addresses are not remembered as usual. */
  readonly attackHours: ReadonlySet<number>;
  /** Changes when the two do. */
  readonly fingerprint: string;
}

/** A zone whose hours before `nowHour` are to be counted. */
export interface CountedZone {
  readonly zoneId: number;
  readonly nowHour: number;
  readonly known: KnownSources;
  readonly policy: HourPolicy;
}

export interface CountedHours {
  /** Counted hours of the history, oldest first. */
  readonly hours: readonly SourceHour[];
  /** Hours that are still to be counted. */
  readonly missing: readonly number[];
  /** Hours of the history whose events may be missing, such as those that a backfill has not reached. */
  readonly unknown: readonly number[];
  /** The first minute with events that is known; null without any. */
  readonly firstMinute: number | null;
}

/** Returns the first hour that the thresholds of `nowHour` and of the hour before it use. */
export function firstHourOf(nowHour: number): number {
  return nowHour - HISTORY_HOURS - 1;
}

/**
 * Returns the counted hours of zones. Before that, counts the closed hours that have not been counted or have got late
 * events, oldest first, because what is usual for an address depends on the days before. Everything is derived from
 * events: a second replica that does the same at the same time stores the same. Stops when the budget is
 * spent.
 */
export async function countSourceHours(
  database: Database,
  zones: readonly CountedZone[],
  budget: CountBudget,
): Promise<ReadonlyMap<number, CountedHours>> {
  const { db } = database;
  const fromHour = firstHourOf(Math.min(...zones.map(({ nowHour }) => nowHour)));
  const zoneIds = zones.map(({ zoneId }) => zoneId);
  const firstMinutes = await readFirstEventMinutes(db, zoneIds, fromHour * 60);
  const wanted = new Map(
    zones.map(({ zoneId, nowHour, policy }) => {
      const firstHour = Math.max(fromHour, Math.floor((firstMinutes.get(zoneId) ?? nowHour * 60) / 60));
      const hours = Array.from({ length: Math.max(nowHour - firstHour, 0) }, (_, i) => firstHour + i);
      return [zoneId, hours.filter((hour) => !policy.isUnknownHour(hour))];
    }),
  );
  let found = await readSourceHours(db, zoneIds, fromHour);
  const missing = zones.flatMap(({ zoneId }) => {
    const present = new Set(found.get(zoneId)?.map(({ hour }) => hour));
    return (wanted.get(zoneId) ?? []).filter((hour) => !present.has(hour)).map((hour) => ({ zoneId, hour }));
  });
  if (missing.length > 0) {
    await addSourceHours(db, missing);
    found = await readSourceHours(db, zoneIds, fromHour);
  }
  const changed: number[] = [];
  for (const zone of zones) {
    const known = new Set(wanted.get(zone.zoneId));
    const stale = (found.get(zone.zoneId) ?? []).filter(({ hour, isStale }) => isStale && known.has(hour));
    if (stale.length > 0) changed.push(zone.zoneId);
    await recountHours(database, zone, stale, budget);
  }
  if (changed.length > 0) found = new Map([...found, ...(await readSourceHours(db, changed, fromHour))]);
  return new Map(
    zones.map(({ zoneId, nowHour, policy }) => {
      const hours = found.get(zoneId)?.filter(({ peaks }) => peaks !== null) ?? [];
      const counted = new Set(hours.map(({ hour }) => hour));
      const missing = (wanted.get(zoneId) ?? []).filter((hour) => !counted.has(hour));
      const history = Array.from({ length: Math.max(nowHour - fromHour, 0) }, (_, i) => fromHour + i);
      const unknown = history.filter(policy.isUnknownHour);
      return [zoneId, { hours, missing, unknown, firstMinute: firstMinutes.get(zoneId) ?? null }];
    }),
  );
}

async function recountHours(
  database: Database,
  { zoneId, known, policy }: CountedZone,
  stale: readonly SourceHour[],
  budget: CountBudget,
): Promise<void> {
  // The usual rules of a day depend on the days before it. So they are read again before the first hour of each day.
  for (const [day, hours] of Map.groupBy(stale, ({ hour }) => Math.floor(hour / 24))) {
    const usual = await readUsual(database.db, zoneId, day);
    for (const { hour, marks } of hours) {
      if (!takeHour(budget, zoneId)) return;
      const { peaks, addresses } = await recountSourceHour(database.db, zoneId, hour, { usual, known });
      const remembered = policy.attackHours.has(hour)
        ? []
        : [...addresses].map(([address, largest]) => ({ zoneId, day, address, peaks: largest }));
      const counted = { zoneId, hour, marks, known: known.fingerprint, peaks };
      await inTransaction(database, ({ tx }) => storeSourceHours(tx, [counted], remembered));
    }
  }
}

/**
 * Returns the counted hours of [fromHour, toHour) whose peaks differ from a recount of their events. The series of
 * rules per address is left out: it depends on what was usual for an address when the hour was counted. So are hours that
 * were counted with another list of known sources.
 */
export async function compareSourceHours(
  db: Queryable,
  zoneId: number,
  { fromHour, toHour, known }: { fromHour: number; toHour: number; known: KnownSources },
): Promise<{ hour: number; stored: readonly number[]; recounted: readonly number[] }[]> {
  const rows = (await readSourceHours(db, [zoneId], fromHour)).get(zoneId) ?? [];
  const differing = [];
  for (const { hour, peaks, isStale, known: left } of rows) {
    if (hour >= toHour || peaks === null || isStale || left !== known.fingerprint) continue;
    const { peaks: recounted } = await recountSourceHour(db, zoneId, hour, {
      usual: createUsualRules(),
      known,
    });
    const [before, now] = [peaks, recounted].map((counts) => counts.slice(WINDOW_COUNT)) as [
      number[],
      number[],
    ];
    if (now.join() !== before.join()) differing.push({ hour, stored: before, recounted: now });
  }
  return differing;
}

/** Returns the minutes whose events an hour's windows count: [from, to). */
function minutesOfHour(hour: number): { from: number; to: number } {
  return { from: hour * 60 - LONGEST_WINDOW + 1, to: (hour + 1) * 60 };
}

interface CountedBy {
  readonly usual: UsualRules;
  readonly known: KnownSources;
}

function recountSourceHour(db: Queryable, zoneId: number, hour: number, { usual, known }: CountedBy) {
  const span = { zoneId, ...minutesOfHour(hour) };
  const by = { usualOf: usual.usualOn(Math.floor(hour / 24)), isKnown: known.isKnown };
  return countHour(hour, readSourceEvents(db, span), by);
}

/** Reads what is usual for the addresses of a zone on a day. */
export async function readUsual(db: Queryable, zoneId: number, day: number): Promise<UsualRules> {
  return toUsualRules(await readSourceUsual(db, [zoneId], { fromDay: day - USUAL_DAYS, toDay: day }));
}

/** Returns what the largest counts of addresses on some days make usual. */
export function toUsualRules(rows: readonly Pick<AddressDays, "address" | "days">[]): UsualRules {
  const usual = createUsualRules();
  for (const { address, days } of rows) for (const [day, ...peaks] of days) usual.note(address, day, peaks);
  return usual;
}
