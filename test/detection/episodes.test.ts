import { expect, test } from "vitest";
import { assessSeries } from "#stages/detection/assess-series.ts";
import { findEpisodes } from "#stages/detection/backtest/scan-history.ts";
import { gradeSeverity } from "#stages/detection/episode.ts";
import { createThresholds, type Thresholds } from "#stages/detection/thresholds/thresholds.ts";
import { createFractions, drawPoisson } from "./support/histories.ts";

const FIRST = 20_000_040;
const DAY = 1_440;
const policy = { z: 3.5 };

/** Three days of steady traffic, and an attack on top of it. */
function attacked(perMinute: number, attack: { at: number; minutes: number; perMinute: number }, seed = 1) {
  const fraction = createFractions(seed);
  return Array.from({ length: 3 * DAY + 300 }, (_, i) => {
    const isAttacked = i >= attack.at && i < attack.at + attack.minutes;
    return drawPoisson(perMinute, fraction) + (isAttacked ? attack.perMinute : 0);
  });
}

test.each([0.02, 0.5, 5, 60])(
  "an attack on %d events a minute is one spike, closed when it is over",
  (usual) => {
    const at = 3 * DAY + 17;
    const counts = attacked(usual, { at, minutes: 10, perMinute: Math.max(60, usual * 10) });

    const found = findEpisodes(counts, FIRST, policy).filter(({ openedAt }) => openedAt > FIRST + at);

    expect(found).toHaveLength(1);
    const [spike] = found;
    expect((spike?.openedAt ?? 0) - FIRST).toBeLessThanOrEqual(at + 2);
    // The quarter of an hour in which the attack leaves the windows, then a quiet one.
    const closedAfter = (spike?.closedAt ?? Infinity) - FIRST - (at + 10);
    expect(closedAfter).toBeGreaterThanOrEqual(15);
    expect(closedAfter).toBeLessThanOrEqual(35);
  },
);

test("a pause of less than a quarter of an hour does not split a spike", () => {
  const at = 3 * DAY;
  const counts = attacked(0.5, { at, minutes: 5, perMinute: 100 });
  for (let i = at + 15; i < at + 20; i += 1) counts[i] = 100;
  const found = findEpisodes(counts, FIRST, policy).filter(({ openedAt }) => openedAt > FIRST + at);
  expect(found).toHaveLength(1);
});

test("events that a closed spike has reported open no second spike, but another attack does", () => {
  const at = 3 * DAY;
  const counts = attacked(0, { at, minutes: 10, perMinute: 200 });
  counts[0] = 1;
  // The hour's window still holds two thousand events when the spike closes.
  expect(findEpisodes(counts, FIRST, policy)).toHaveLength(1);

  for (let i = at + 45; i < at + 50; i += 1) counts[i] = 200;
  expect(findEpisodes(counts, FIRST, policy)).toHaveLength(2);
});

test("an attack that is over neither enlarges the next spike nor keeps it open", () => {
  const at = 3 * DAY;
  const counts = attacked(0, { at, minutes: 5, perMinute: 2_000 });
  counts[0] = 1;
  for (let i = at + 40; i < at + 43; i += 1) counts[i] = 150;
  const [first, second] = findEpisodes(counts, FIRST, policy);
  expect(first).toMatchObject({ peak: 10_000, severity: "critical" });
  expect(second).toMatchObject({ openedAt: FIRST + at + 41, peak: 450 });
  expect(second?.closedAt).toBeLessThanOrEqual(FIRST + at + 43 + 35);
});

test("a spike keeps the maxima of its strongest minute and the present count", () => {
  const counts = [...Array.from({ length: 2 * DAY }, () => 0), 30, 90, 500, 20, 0, 0, 0, 0];
  counts[0] = 1;
  const [spike] = findEpisodes(counts, FIRST, policy);
  expect(spike).toMatchObject({
    openedAt: FIRST + 2 * DAY + 1,
    peak: 640,
    count: 640,
    closedAt: null,
    severity: "critical",
    kind: "spike",
  });
  expect(spike?.score).toBeGreaterThan(8.5);
});

test("a rule's first small burst is a milder notice, a large one a spike, and the notice can grow", () => {
  const quiet = Array.from({ length: 400 }, () => 0);
  const kinds = (counts: number[]) =>
    findEpisodes([...quiet, ...counts], FIRST, policy).map(({ kind }) => kind);
  expect(kinds([12, 3, 0])).toEqual(["new-rule"]);
  expect(kinds([120])).toEqual(["spike"]);
  expect(kinds([12, 40, 80])).toEqual(["spike"]);
  const seenBefore = [1, ...Array.from({ length: DAY }, () => 0), 12];
  expect(findEpisodes(seenBefore, FIRST, policy).map(({ kind }) => kind)).toEqual(["spike"]);
});

test("a rule that may have been seen in missing hours opens no spike as a new one, a large burst does", () => {
  const minute = FIRST + 400;
  const kindAfter = (count: number, canBeNew: boolean) => {
    const [counts, hour] = [Array.from({ length: 400 }, () => 0), Math.floor(minute / 60)];
    return assessSeries({
      counts: [...counts, count],
      firstMinute: FIRST,
      tested: [minute],
      episode: null,
      firstUnjudged: 0,
      freshFrom: 0,
      z: 3.5,
      canBeNew,
      thresholdsOf: () => ({ thresholds: flat(10), firstHour: hour }),
    }).episode?.kind;
  };
  expect(kindAfter(12, true)).toBe("new-rule");
  expect(kindAfter(12, false)).toBeUndefined();
  expect(kindAfter(120, false)).toBe("spike");
});

test("severity follows the distance from the threshold's score", () => {
  expect([3.5, 5.4, 5.5, 8.4, 8.5].map((score) => gradeSeverity(score, 3.5))).toEqual([
    "warning",
    "warning",
    "warning",
    "warning",
    "critical",
  ]);
  expect(gradeSeverity(6, 4.5)).toBe("warning");
});

const flat = (threshold: number): Thresholds => {
  const thresholds = createThresholds();
  thresholds.threshold.fill(threshold);
  thresholds.deviation.fill(0.6);
  return thresholds;
};

test("after a pause in the judging a spike that went on stays open", () => {
  const counts = Array.from({ length: 75 }, (_, i) => (i >= 65 ? 100 : 0));
  const episode = {
    openedAt: 0,
    lastActiveAt: 0,
    windowMinutes: 3 as const,
    count: 9,
    usual: 0,
    threshold: 10,
    score: 4,
    peak: 9,
    severity: "warning" as const,
    kind: "spike" as const,
  };
  const input = { counts, firstMinute: 1_000, episode, firstUnjudged: 0, freshFrom: 0, z: 3.5 };
  const known = { thresholds: flat(10), firstHour: 0 };
  const tested = Array.from({ length: 15 }, (_, i) => 1_060 + i);

  const outcome = assessSeries({ ...input, tested, thresholdsOf: () => known });

  expect(outcome).toMatchObject({ closedAt: null, episode: { lastActiveAt: 1_075, openedAt: 0 } });
  const quiet = assessSeries({
    ...input,
    counts: Array.from({ length: 75 }, () => 0),
    tested,
    thresholdsOf: () => known,
  });
  expect(quiet).toMatchObject({ closedAt: 1_075, episode: { lastActiveAt: 0 } });
});
