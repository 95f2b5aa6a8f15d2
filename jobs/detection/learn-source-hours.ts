import { readHourVersions } from "#db/detection/source-hours.ts";
import { countSourceHours, firstHourOf } from "./count-source-hours.ts";
import { isLacking, type KeptWatch, learnHours } from "./kept-watch.ts";
import { attempt, type Pass, toBatches, ZONES_PER_WARMING } from "./source-pass.ts";
import type { DueZone } from "./source-tick.ts";

/**
 * Counts hours from their events that no watch has counted or that got late events, and gives changed hours to the
 * watches: once an hour also those that another replica has counted.
 */
export async function learnChanges(pass: Pass, zones: readonly DueZone[]): Promise<void> {
  const nowHour = Math.floor(pass.tick.span.endMinute / 60);
  const isOld = ({ zoneId }: DueZone) => (pass.kept.get(zoneId)?.version.readIn ?? nowHour) < nowHour;
  const versions = await readVersions(pass, zones.filter(isOld), nowHour);
  const changed = zones.filter(({ zoneId }) => {
    const one = pass.kept.get(zoneId);
    if (one === undefined) return false;
    const before = one.version;
    one.version = versions.get(zoneId) ?? before;
    return one.version.text !== before.text || pass.stale.has(zoneId) || isLacking(one);
  });
  for (const [index, batch] of toBatches(changed, ZONES_PER_WARMING).entries()) {
    // The next tick counts the others.
    if (index > 0 && pass.budget.isOver()) break;
    await attempt(pass, batch, async (some) => {
      const counted = await countSourceHours(pass.deps.database, some, pass.budget);
      for (const [zoneId, hours] of counted) {
        const one = pass.kept.get(zoneId);
        if (one === undefined) continue;
        if ((hours.firstMinute ?? Number.POSITIVE_INFINITY) >= (one.firstMinute ?? 0)) learnHours(one, hours);
        else {
          // Minutes that were not judged, because the zone seemed to be in its first day, are judged now.
          pass.kept.delete(zoneId);
          pass.isDone = false;
        }
      }
    });
  }
}

/** Reads the versions of the hours of zones. The two newest hours change no threshold and are left out. */
export async function readVersions({ deps }: Pass, zones: readonly DueZone[], nowHour: number) {
  if (zones.length === 0) return new Map<number, KeptWatch["version"]>();
  const span = { fromHour: firstHourOf(nowHour), toHour: nowHour - 2 };
  const zoneIds = zones.map(({ zoneId }) => zoneId);
  const found = await readHourVersions(deps.database.db, zoneIds, span);
  return new Map(zones.map(({ zoneId }) => [zoneId, { text: found.get(zoneId) ?? "", readIn: nowHour }]));
}
