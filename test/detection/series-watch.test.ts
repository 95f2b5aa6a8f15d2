import fc from "fast-check";
import { expect, test } from "vitest";
import { createSeriesWatch, passMinutes, takeMinute } from "#detection/rules/series-watch.ts";
import { drawCounts, shapes } from "./support/histories.ts";
import { type FoundEpisode, findEpisodes } from "./support/scan-history.ts";

/** Only minutes with events, as counts are stored; the detector adds the zeros. */
function follow(counts: readonly number[], firstMinute: number, policy: Parameters<typeof takeMinute>[3]) {
  const found: FoundEpisode[] = [];
  const watch = createSeriesWatch();
  const keep = (episode: FoundEpisode) => void found.push(episode);
  for (const [i, count] of counts.entries())
    if (count > 0) takeMinute(watch, firstMinute + i, count, policy, keep);
  passMinutes(watch, firstMinute + counts.length, policy, keep);
  return watch.episode === null ? found : [...found, { ...watch.episode, closedAt: null }];
}

test("fed with sparse minutes one by one, the detector finds the episodes of the whole history", () => {
  let episodes = 0;
  const property = fc.property(
    shapes,
    fc.constantFrom(2, 3.5),
    fc.constantFrom(0, 0.1),
    (shape, z, unknown) => {
      const counts = drawCounts(shape);
      const isUnknownHour = (hour: number) => (hour * 2_654_435_761) % 1_000 < unknown * 1_000;
      const policy = { z, isUnknownHour };
      const found = follow(counts, shape.firstMinute, policy);
      expect(found).toEqual(findEpisodes(counts, shape.firstMinute, policy));
      episodes += found.length;
    },
  );
  fc.assert(property, { numRuns: 150 });
  expect(episodes).toBeGreaterThan(100);
});

test("an attack at the end of a series is closed by the silence after it", () => {
  const counts = [
    1,
    ...Array.from({ length: 3_000 }, () => 0),
    400,
    300,
    ...Array.from({ length: 90 }, () => 0),
  ];
  const [episode, ...others] = follow(counts, 20_000_000, { z: 3.5 });
  expect(others).toEqual([]);
  expect(episode).toMatchObject({ openedAt: 20_003_002, peak: 700 });
  expect(episode?.closedAt).toBeGreaterThan(20_003_002);
});
