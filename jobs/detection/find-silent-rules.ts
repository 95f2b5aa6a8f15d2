import type { Queryable } from "#db/client.ts";
import { type ChangesRow, readQuietRules } from "#db/detection/rule-changes.ts";
import { readSearchedThrough } from "#db/detection/spikes.ts";
import { readActiveRules, readTrend } from "#db/detection/trends.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { NewChange } from "#stages/detection/merge-changes.ts";
import { HISTORY_HOURS, profileHours } from "#stages/detection/silent-rules/hour-profile.ts";
import {
  judgeSilence,
  LEAST_EVENTS,
  LEAST_MISSING,
  LEAST_QUIET_MINUTES,
} from "#stages/detection/silent-rules/judge-silence.ts";
import { createZoneLevel, LEVEL_MINUTES, type LevelOf } from "#stages/detection/silent-rules/zone-level.ts";
import { viewZone, type ZoneView } from "#stages/detection/zone-view.ts";

const WEEK_MS = HISTORY_HOURS * HOUR_MS;
/** A zone that was not read for longer has no level, so none of its rules is judged. */
const READ_WITHIN_MINUTES = 60;
/** At the busiest time of a day more is missing than on average. */
const LEAST_ON_AVERAGE = LEAST_MISSING / 8;
/** Maximum number of rules that are judged in one run, those that miss most first. */
const RULES_PER_RUN = 1_000;

/**
 * Returns the rules of the zone's open spike that have events again: any since the last one of them fell silent, because
 * earlier ones were seen then.
 */
export async function findSpeaking(db: Queryable, { zoneId, changes }: ChangesRow, nowMs: number) {
  const silent = changes.filter(({ endedAt }) => endedAt === null);
  const since = Math.max(...silent.map((one) => one.since));
  return readActiveRules(db, zoneId, { fromMs: (since + 1) * MINUTE_MS, toMs: nowMs });
}

/** Finds rules that have no events although they usually do. Hours that are not wholly stored are never silence. */
export async function findSilentRules(
  db: Queryable,
  nowMs: number,
): Promise<(NewChange & { readonly zoneId: number })[]> {
  const quiet = await readQuietRules(db, {
    nowMs,
    daysFromMs: nowMs - 2 * WEEK_MS,
    atLeast: LEAST_EVENTS,
    missing: LEAST_ON_AVERAGE,
    lastFromMs: nowMs - WEEK_MS,
    lastToMs: nowMs - LEAST_QUIET_MINUTES * MINUTE_MS,
    limit: RULES_PER_RUN,
  });
  if (quiet.length === 0) return [];
  const covered = await readSearchedThrough(db, { afterMs: nowMs - 2 * WEEK_MS - HOUR_MS, untilMs: nowMs });
  const byZone = Map.groupBy(covered, ({ zoneId }) => zoneId);
  const found: (NewChange & { readonly zoneId: number })[] = [];
  for (const [zoneId, rules] of Map.groupBy(quiet, (one) => one.zoneId)) {
    const view = viewZone(byZone.get(zoneId) ?? [], nowMs);
    const through = readThrough(view, nowMs);
    if (!view.isReady || through === null) continue;
    const { isUnknownHour } = view;
    const gaps = rules.map(({ ruleId, lastMinute, hours }) => {
      const counts = new Map(hours);
      const lastHour = Math.floor(lastMinute / 60);
      const week = { lastHour, isUnknownHour, countOf: (hour: number) => counts.get(hour) ?? 0 };
      return { ruleId, through, isUnknownHour, lastMinute, profile: profileHours(week) };
    });
    // The zone's own hours are read only for rules that would be silent in a zone as busy as usual.
    const possible = gaps.filter((gap) => judgeSilence({ ...gap, levelOf: () => 1 }) !== null);
    if (possible.length === 0) continue;
    const levelOf = await readLevel(db, zoneId, { through, isUnknownHour });
    for (const { ruleId, ...gap } of possible) {
      const expected = judgeSilence({ ...gap, levelOf });
      if (expected !== null) found.push({ zoneId, ruleId, since: gap.lastMinute, expected });
    }
  }
  return found;
}

/** Returns the end of the zone's known minutes; null if the last hour has none. */
function readThrough({ isTestable }: ZoneView, nowMs: number): number | null {
  const endMinute = Math.floor(nowMs / MINUTE_MS);
  for (let minute = endMinute - 1; minute >= endMinute - READ_WITHIN_MINUTES; minute -= 1)
    if (isTestable(minute)) return minute + 1;
  return null;
}

async function readLevel(
  db: Queryable,
  zoneId: number,
  { through, isUnknownHour }: Pick<ZoneView, "isUnknownHour"> & { through: number },
): Promise<LevelOf> {
  const openHour = Math.floor(through / 60);
  const read = async (width: 60 | 3_600, from: number, to: number) => {
    const stepMs = width * 1_000;
    const span = { width, fromMs: from * stepMs, toMs: to * stepMs };
    const buckets = await readTrend(db, { zoneId, ruleId: null, ...span });
    return new Map(buckets.map(({ startsAt, total }) => [startsAt / stepMs, total]));
  };
  const hours = await read(3_600, openHour - HISTORY_HOURS, openHour);
  const minutes = await read(60, through - LEVEL_MINUTES, through);
  return createZoneLevel({
    lastHour: openHour - 1,
    isUnknownHour,
    countOf: (hour) => hours.get(hour) ?? 0,
    through,
    countAt: (minute) => minutes.get(minute) ?? 0,
  });
}
