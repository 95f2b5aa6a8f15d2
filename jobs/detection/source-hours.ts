/** One pass of the detector of sources, and the hours that it stores. */

import type { Database } from "#db/client.ts";
import { noteJudgedHours } from "#db/detection/judged-hours.ts";
import { readFirstEventMinutes } from "#db/detection/source-events.ts";
import {
  addSourceHours,
  readHourVersions,
  readStoredCounts,
  storeSourceHours,
} from "#db/detection/source-hours.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { toError } from "#lib/errors.ts";
import type { JobContext } from "../context.ts";
import { type CountBudget, countSourceHours, firstHourOf } from "./count-source-hours.ts";
import { isInFirstDay, isLacking, type KeptWatch, learnHours, takeEndedHours } from "./kept-watch.ts";
import type { DueZone, ReadTickDeps, SourceTick } from "./source-tick.ts";

export interface DetectSourcesDeps extends ReadTickDeps, Pick<JobContext, "log" | "zoneIds" | "afterSpikes"> {
  /** Names the settings that are in use, together with the fingerprint of a zone's known sources. */
  readonly settingsOf?: (known: string) => string;
}

/** One pass of a tick over zones. */
export interface Pass {
  readonly deps: DetectSourcesDeps;
  readonly tick: SourceTick;
  readonly kept: Map<number, KeptWatch>;
  readonly budget: CountBudget;
  readonly tried: Set<number>;
  /** Zones that have hours to count from their events. */
  readonly stale: Set<number>;
  readonly signal: AbortSignal;
  /** Zones whose running minute is judged, too, because something of them comes near its line. */
  readonly rising: Set<number>;
  changed: number;
  /** False if there is work left for another pass. */
  isDone: boolean;
  failure: Error | null;
}

/** Zones whose watches are made together. */
export const ZONES_PER_WARMING = 50;

export function toBatches<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}

/**
 * Runs a step for zones. If it fails for one of them, that zone loses its watch, and the others are not stopped. When the
 * service stops, its connections end and every zone would fail.
 */
export async function attempt(
  pass: Pass,
  zones: readonly DueZone[],
  run: (zones: readonly DueZone[]) => Promise<unknown>,
): Promise<void> {
  try {
    await run(zones);
  } catch (thrown) {
    for (const { zoneId } of zones) pass.kept.delete(zoneId);
    if (pass.signal.aborted) throw thrown;
    if (zones.length === 1) {
      pass.tried.add(zones[0]?.zoneId ?? 0);
      pass.failure = toError(thrown);
      pass.deps.log.error({ err: pass.failure, zoneId: zones[0]?.zoneId }, "sources of a zone not judged");
    } else for (const zone of zones) await attempt(pass, [zone], run);
  }
}

/**
 * Stores the hours that watches have counted, so that nobody reads their events again. The rows are added before the
 * numbers of stored events are read, so an event that comes later finds a row to mark. An hour of which, or of the hour
 * before, a watch has taken more or fewer events stays stale and is counted again from its events. The others are noted as
 * judged with the settings that `settingsOf` names. Returns the zones of the stale hours.
 */
export async function storeEndedHours(
  database: Database,
  watches: readonly KeptWatch[],
  settingsOf: (known: string) => string,
): Promise<readonly number[]> {
  const ended = watches.map(takeEndedHours);
  const hours = ended.flatMap((one) => one.hours);
  if (hours.length === 0) return [];
  const { db } = database;
  await addSourceHours(db, hours);
  const before = hours.map(({ zoneId, hour }) => ({ zoneId, hour: hour - 1 }));
  const stored = await readStoredCounts(db, [...before, ...hours]);
  const isWhole = ({ events, eventsBefore }: (typeof hours)[number], i: number) =>
    eventsBefore === stored[i] && events === stored[hours.length + i];
  const whole = hours.filter(isWhole).map((hour) => ({ ...hour, marks: 0 }));
  const addresses = ended.flatMap((one) => one.addresses);
  if (whole.length > 0) await inTransaction(database, ({ tx }) => storeSourceHours(tx, whole, addresses));
  const judged = whole.filter(({ isJudged }) => isJudged);
  const noted = judged.map((hour) => ({ ...hour, judgedWith: settingsOf(hour.known) }));
  await noteJudgedHours(db, noted, false);
  return hours.filter((hour, i) => !isWhole(hour, i)).map(({ zoneId }) => zoneId);
}

/**
 * Counts hours from their events that no watch has counted or that got late events, and gives changed hours to the
 * watches: once an hour also those that another replica has counted. A watch that was
 * made before older events of its zone were stored is made again.
 */
export async function learnChanges(pass: Pass, zones: readonly DueZone[]): Promise<void> {
  const nowHour = Math.floor(pass.tick.span.endMinute / 60);
  const isOld = ({ zoneId }: DueZone) => (pass.kept.get(zoneId)?.version.readIn ?? nowHour) < nowHour;
  const versions = await readVersions(pass, zones.filter(isOld), nowHour);
  const older = await findOlderHistory(pass, zones, nowHour);
  const changed = zones.filter(({ zoneId }) => {
    const one = pass.kept.get(zoneId);
    if (one === undefined) return false;
    const before = one.version;
    one.version = versions.get(zoneId) ?? before;
    const isChanged = one.version.text !== before.text || pass.stale.has(zoneId);
    return isChanged || older.has(zoneId) || isLacking(one);
  });
  for (const [index, batch] of toBatches(changed, ZONES_PER_WARMING).entries()) {
    // The next tick counts the others.
    if (index > 0 && pass.budget.isOver()) break;
    await attempt(pass, batch, async (some) => {
      for (const [zoneId, hours] of await countSourceHours(pass.deps.database, some, pass.budget)) {
        const one = pass.kept.get(zoneId);
        if (one === undefined) continue;
        if (isInFirstDay(one) && isOlder(hours.firstMinute, one)) {
          // The next watch judges the tested minutes. Earlier ones follow hours that got events and are judged late.
          pass.kept.delete(zoneId);
          pass.isDone = false;
        } else {
          learnHours(one, hours);
          // The hours of other days may have made something usual.
          one.usualDay = null;
        }
      }
    });
  }
}

/** Returns the zones that seem to be in their first day and of which older events are stored by now. */
async function findOlderHistory(pass: Pass, zones: readonly DueZone[], nowHour: number) {
  const learning = zones.flatMap(({ zoneId }) => pass.kept.get(zoneId) ?? []).filter(isInFirstDay);
  if (learning.length === 0) return new Set<number>();
  const zoneIds = learning.map(({ zoneId }) => zoneId);
  const found = await readFirstEventMinutes(pass.deps.database.db, zoneIds, firstHourOf(nowHour) * 60);
  return new Set(learning.flatMap((one) => (isOlder(found.get(one.zoneId), one) ? one.zoneId : [])));
}

function isOlder(minute: number | null | undefined, { watch }: KeptWatch): minute is number {
  return (minute ?? Number.POSITIVE_INFINITY) < (watch.firstMinute() ?? Number.POSITIVE_INFINITY);
}

/** Reads the versions of the hours of zones. The two newest hours change no threshold and are left out. */
export async function readVersions({ deps }: Pass, zones: readonly DueZone[], nowHour: number) {
  if (zones.length === 0) return new Map<number, KeptWatch["version"]>();
  const span = { fromHour: firstHourOf(nowHour), toHour: nowHour - 2 };
  const zoneIds = zones.map(({ zoneId }) => zoneId);
  const found = await readHourVersions(deps.database.db, zoneIds, span);
  return new Map(zones.map(({ zoneId }) => [zoneId, { text: found.get(zoneId) ?? "", readIn: nowHour }]));
}
