import { expect, test } from "vitest";
import { createGuard } from "../bench/detector/guard.ts";
import { createAdjacentWindows, createZScore } from "../bench/detector/peers.ts";
import { createScore } from "../bench/detector/score.ts";
import { drawSeries, SCORED_FROM } from "../bench/detector/synthetic-series.ts";

const minutes = (length: number, count: (minute: number) => number) =>
  Int32Array.from({ length }, (_, minute) => count(minute));

test("the adjacent windows compare the last window with the one before, and then keep silent for two", () => {
  const rule = createAdjacentWindows(60, 3, 10);
  const steady = minutes(600, () => 1);
  expect(rule(steady)).toEqual([]);
  // 120 more events make 180 of the newer window against 60 of the older.
  const attacked = minutes(600, (minute) => (minute >= 200 && minute < 240 ? 4 : 1));
  expect(rule(attacked)).toEqual([{ from: 239, to: 240 }]);
  expect(rule(minutes(600, (minute) => (minute === 60 ? 9 : 0)))).toEqual([]);
});

test("the z-score compares five minutes with six hours, above its floor only", () => {
  const counts = minutes(600, (minute) => (minute >= 400 && minute < 410 ? 60 : 1 + (minute % 3)));
  expect(createZScore(3.5, 200)(counts)).toEqual([{ from: 404, to: 405 }]);
  expect(createZScore(3.5, 300)(counts)).toEqual([]);
});

test("a score distinguishes found attacks, late ones, false alerts and unchecked spans", () => {
  const score = createScore();
  const at = SCORED_FROM + 1_000;
  const series = {
    counts: new Int32Array(SCORED_FROM + 2 * 1_440),
    attacks: [
      { from: at, to: at + 20, factor: 5 },
      { from: at + 800, to: at + 805, factor: 5 },
    ],
  };
  const alert = (from: number) => ({ from, to: from + 1 });
  score.add(series, [alert(10), alert(at + 3), alert(at + 70), alert(at + 200)]);
  expect(score.read()).toMatchObject({
    attacks: 2,
    found: 1,
    recall: 0.5,
    medianMinutes: 4,
    falseAlerts: 1,
    falsePerSeriesDay: 0.5,
    precision: 0.5,
    f1: 0.5,
  });
});

test("the detector finds most attacks of the bench's series and pages less often falsely than the others", () => {
  const detectors = [createGuard(3.5), createAdjacentWindows(60, 3, 10), createZScore(7, 20)];
  const scores = detectors.map((detect) => ({ detect, score: createScore() }));
  for (let index = 0; index < 60; index += 1) {
    const series = drawSeries(7, index);
    for (const { detect, score } of scores) score.add(series, detect(series.counts));
  }
  const [guard, ...peers] = scores.map(({ score }) => score.read());
  expect(guard?.recall).toBeGreaterThan(0.6);
  for (const peer of peers) {
    expect(guard?.f1).toBeGreaterThan(1.5 * peer.f1);
    expect(guard?.falsePerSeriesDay).toBeLessThan(peer.falsePerSeriesDay / 2);
  }
});
