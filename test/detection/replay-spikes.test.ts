import fc from "fast-check";
import { expect, test } from "vitest";
import { gradeSpike } from "#detection/rules/assess-series.ts";
import { sample } from "../support/sample.ts";
import { END, eventsOf, minuteOf, openDetectWorld, START, WATCHED_MINUTES } from "./detect-support.ts";
import { createFractions, drawCounts, shapes } from "./support/histories.ts";
import { findEpisodes } from "./support/scan-history.ts";
import { ZONE } from "./trend-support.ts";

const GAP_ZONE = 102;

const { database, world } = await openDetectWorld();

/** Histories of many shapes with an attack or two in the minutes that are watched; those of one zone have gaps. */
function drawHistories(seed: number) {
  const fraction = createFractions(seed);
  return fc.sample(shapes, { seed, numRuns: 24 }).map((shape, i) => {
    const counts = drawCounts({
      ...shape,
      hours: 20 + (shape.hours % 70),
      perMinute: Math.min(shape.perMinute, 0.5),
      burstFactor: Math.min(shape.burstFactor, 30),
    });
    const firstMinute = END - counts.length;
    for (let attacks = i % 3; attacks > 0; attacks -= 1) {
      const at = counts.length - Math.floor(fraction() * WATCHED_MINUTES);
      for (let k = at; k < Math.min(at + 5, counts.length); k += 1)
        counts[k] = 20 + Math.floor(fraction() * 60);
    }
    const zoneId = i % 2 === 0 ? ZONE : GAP_ZONE;
    const isGap = (hour: number) =>
      zoneId === GAP_ZONE && hour % 5 === 0 && hour < Math.floor(START / 60) - 1;
    const seen = counts.map((count, k) => (isGap(Math.floor((firstMinute + k) / 60)) ? 0 : count));
    return { zoneId, ruleId: `9${i}`, key: `${zoneId}/9${i}`, counts: seen, firstMinute, isGap };
  });
}

async function keepHistories(histories: ReturnType<typeof drawHistories>): Promise<void> {
  for (const zoneId of [ZONE, GAP_ZONE]) {
    const inZone = histories.filter((history) => history.zoneId === zoneId);
    const hours = Array.from({ length: 200 }, (_, i) => Math.floor(END / 60) - i);
    const gaps = hours.filter((hour) => inZone[0]?.isGap(hour));
    const events = inZone.flatMap(({ counts, firstMinute, ruleId }) =>
      eventsOf(counts, firstMinute, { ruleId }),
    );
    await world.keep(events, { zoneId, gaps });
  }
}

test.each(sample([11, 12], (seed) => seed === 12))(
  "the job finds what a scan of the whole history finds, and so do detectors that are killed and start anew (seed %d)",
  async (seed) => {
    const histories = drawHistories(seed);
    await keepHistories(histories);
    await world.tickThrough(START, END);
    const found = await world.readSpikes();

    let compared = 0;
    for (const { key, counts, firstMinute, isGap } of histories) {
      // Neither gaps nor hours from before the coverage are known.
      const isUnknownHour = (hour: number) => isGap(hour) || hour < Math.floor(END / 60) - 200;
      const episodes = findEpisodes(counts, firstMinute, { z: 3.5, isUnknownHour });
      // A spike that was open when the watch began has an earlier beginning in the scan.
      const isCut = ({ openedAt, closedAt }: (typeof episodes)[number]) =>
        openedAt <= START && (closedAt === null || closedAt > START - 75);
      if (episodes.some(isCut)) continue;
      const expected = episodes.filter(({ openedAt }) => openedAt > START);
      const actual = found.filter((spike) => spike.key === key);
      const raised = expected.map((episode, i) => ({
        ...episode,
        severity: gradeSpike({
          score: episode.score,
          z: 3.5,
          addresses: actual[i]?.addresses ?? null,
          before: undefined,
        }).severity,
      }));
      const asEpisodes = actual.map((spike) => ({
        openedAt: minuteOf(spike.openedAt),
        closedAt: minuteOf(spike.closedAt),
        lastActiveAt: minuteOf(spike.lastActiveAt),
        windowMinutes: spike.windowMinutes,
        count: spike.windowCount,
        usual: spike.baseline,
        threshold: spike.threshold,
        score: spike.score,
        peak: spike.peak,
        severity: spike.severity,
        kind: spike.kind,
      }));
      expect({ key, episodes: asEpisodes }).toEqual({ key, episodes: raised });
      compared += expected.length;
    }
    expect(compared).toBeGreaterThanOrEqual(8);

    // A spike that ends within a pause may have been judged through another minute.
    const compare = (rows: typeof found) =>
      rows.map(({ evidence: _evidence, judgedThrough: _judged, ...row }) => row);
    const uninterrupted = compare(found);
    expect(uninterrupted.some(({ closedAt }) => closedAt !== null)).toBe(true);
    await database.pool.query("truncate spikes cascade");
    const fraction = createFractions(seed);
    for (let minute = START; minute < END; ) {
      const pause = 1 + Math.floor(fraction() * 9);
      minute = Math.min(minute + pause, END);
      await world.tickThrough(minute - 1, minute);
      // A spike after one that closed within the pause is found by the next tick.
      await world.tickThrough(minute - 1, minute);
    }
    expect(compare(await world.readSpikes())).toEqual(uninterrupted);
  },
);
