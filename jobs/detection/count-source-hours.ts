import type { Database, Queryable } from "../../db/client.ts";
import { readFirstEventMinute, readSourceEvents } from "../../db/detection/source-events.ts";
import {
  addSourceHours,
  readSourceHours,
  readSourceUsual,
  type SourceHour,
  storeSourceHour,
} from "../../db/detection/source-hours.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { countHour } from "../../src/detection/sources/count-hour.ts";
import { createUsualRules, type UsualRules } from "../../src/detection/sources/usual-rules.ts";
import { HISTORY_HOURS } from "../../src/detection/thresholds/thresholds.ts";
import { LONGEST_WINDOW, WINDOW_COUNT } from "../../src/detection/thresholds/windows.ts";

import type { KnownSources } from "../../src/model/known-source.ts";

/** Hours of one zone that are counted in one tick. */
const HOURS_PER_TICK = 24;
const USUAL_DAYS = 7;

export interface CountedHours {
  /** Counted hours of the history, oldest first. */
  readonly hours: readonly SourceHour[];
  /** False while hours of the history are still to be counted. */
  readonly isComplete: boolean;
  readonly usual: UsualRules;
  /** The first minute with events that is known; null without any. */
  readonly firstMinute: number | null;
}

/**
 * Counts the closed hours of a zone that have not been counted or have got late events, oldest first, because what is
 * usual for an address depends on the days before. Everything is derived from events: a second replica that does the
 * same at the same time stores the same.
 */
export async function countSourceHours(
  database: Database,
  zoneId: number,
  {
    nowHour,
    isUnknownHour,
    known: left,
  }: { nowHour: number; isUnknownHour: (hour: number) => boolean; known: KnownSources },
): Promise<CountedHours> {
  const { db } = database;
  const fromHour = nowHour - HISTORY_HOURS - 1;
  const firstMinute = await readFirstEventMinute(db, zoneId, fromHour * 60);
  const known: number[] = [];
  for (
    let hour = Math.max(fromHour, Math.floor((firstMinute ?? nowHour * 60) / 60));
    hour < nowHour;
    hour += 1
  )
    if (!isUnknownHour(hour)) known.push(hour);
  let hours = await readSourceHours(db, zoneId, fromHour);
  const present = new Set(hours.map(({ hour }) => hour));
  const missing = known.filter((hour) => !present.has(hour));
  if (missing.length > 0) {
    await addSourceHours(db, zoneId, missing);
    hours = await readSourceHours(db, zoneId, fromHour);
  }
  const isKnown = new Set(known);
  const stale = hours.filter(({ hour, isStale }) => isStale && isKnown.has(hour));
  // The usual rules of a day depend on the days before it. So they are read again after the last counted hour of a day.
  let usual = await readUsual(db, zoneId, nowHour);
  for (const ofDay of Map.groupBy(stale.slice(0, HOURS_PER_TICK), ({ hour }) =>
    Math.floor(hour / 24),
  ).values()) {
    for (const one of ofDay) await countSourceHour(database, zoneId, one, { usual, known: left });
    usual = await readUsual(db, zoneId, nowHour);
  }
  if (stale.length > 0) hours = await readSourceHours(db, zoneId, fromHour);
  const counted = hours.filter(({ peaks }) => peaks !== null);
  const isCounted = new Set(counted.map(({ hour }) => hour));
  return {
    hours: counted,
    // The newest hour may be counted a tick later: thresholds leave it out.
    isComplete: known.every((hour) => hour === nowHour - 1 || isCounted.has(hour)),
    usual,
    firstMinute,
  };
}

async function countSourceHour(
  database: Database,
  zoneId: number,
  one: Pick<SourceHour, "hour" | "marks">,
  by: CountedBy,
): Promise<void> {
  const counted = await recountSourceHour(database.db, zoneId, one.hour, by);
  const stored = { ...counted, known: by.known.fingerprint };
  await inTransaction(database, ({ tx }) => storeSourceHour(tx, zoneId, one, stored));
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
  const rows = await readSourceHours(db, zoneId, fromHour);
  const usual = await readUsual(db, zoneId, toHour);
  const differing = [];
  for (const { hour, peaks, isStale, known: left } of rows) {
    if (hour >= toHour || peaks === null || isStale || left !== known.fingerprint) continue;
    const { peaks: recounted } = await recountSourceHour(db, zoneId, hour, { usual, known });
    const [before, now] = [peaks, recounted].map((counts) => counts.slice(WINDOW_COUNT)) as [
      number[],
      number[],
    ];
    if (now.join() !== before.join()) differing.push({ hour, stored: before, recounted: now });
  }
  return differing;
}

interface CountedBy {
  readonly usual: UsualRules;
  readonly known: KnownSources;
}

function recountSourceHour(db: Queryable, zoneId: number, hour: number, { usual, known }: CountedBy) {
  const span = { zoneId, from: hour * 60 - LONGEST_WINDOW + 1, to: (hour + 1) * 60 };
  const by = { usualOf: usual.usualOn(Math.floor(hour / 24)), isKnown: known.isKnown };
  return countHour(hour, readSourceEvents(db, span), by);
}

/** Reads what is usual for the addresses of a zone on every day of the history. */
async function readUsual(db: Queryable, zoneId: number, nowHour: number): Promise<UsualRules> {
  const toDay = Math.floor(nowHour / 24) + 1;
  const usual = createUsualRules();
  const fromDay = toDay - 2 * USUAL_DAYS;
  for (const { address, day, peaks } of await readSourceUsual(db, zoneId, { fromDay, toDay }))
    usual.note(address, day, peaks);
  return usual;
}
