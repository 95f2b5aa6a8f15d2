import { expect, test } from "vitest";
import { assessSeries } from "#detection/rules/assess-series.ts";
import { gradeSeverity } from "#detection/rules/episode.ts";
import { createThresholds, type Thresholds } from "#detection/rules/thresholds/thresholds.ts";
import { createFractions, drawPoisson } from "./support/histories.ts";
import { findEpisodes } from "./support/scan-history.ts";

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

test.each([
  [2, 30, 2],
  [2, 12, 1],
  [16, 400, 1],
])(
  "events that go on at %d a minute and then come at %d, after a quarter of an hour of each, are %d spikes",
  (slow, fast, spikes) => {
    const counts = [1, ...Array.from({ length: 2 * DAY }, () => 0)];
    for (const perMinute of [30, slow, fast]) counts.push(...Array.from({ length: 20 }, () => perMinute));
    expect(findEpisodes(counts, FIRST, policy)).toHaveLength(spikes);
  },
);

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
      countFrom: 0,
      z: 3.5,
      knownOf: () => ({ thresholds: flat(10), firstHour: hour, canBeNew }),
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
  const input = { counts, firstMinute: 1_000, episode, firstUnjudged: 0, countFrom: 0, z: 3.5 };
  const known = { thresholds: flat(10), firstHour: 0 };
  const tested = Array.from({ length: 15 }, (_, i) => 1_060 + i);

  const outcome = assessSeries({ ...input, tested, knownOf: () => known });

  expect(outcome).toMatchObject({ past: [], episode: { lastActiveAt: 1_075, openedAt: 0 } });
  const quiet = assessSeries({
    ...input,
    counts: Array.from({ length: 75 }, () => 0),
    tested,
    knownOf: () => known,
  });
  expect(quiet).toMatchObject({ past: [{ closedAt: 1_075, lastActiveAt: 0 }], episode: null });
});

const RUNNING = 1_060;
const WATCHED = {
  firstMinute: 1_000,
  tested: Array.from({ length: 15 }, (_, i) => RUNNING - 15 + i),
  running: RUNNING,
  episode: null,
  firstUnjudged: 0,
  countFrom: 0,
  z: 3.5,
  knownOf: () => ({ thresholds: flat(10), firstHour: -100 }),
};
/** The last minute of the counts is the running one. */
const endingWith = (...counts: number[]) => [...Array<number>(61 - counts.length).fill(0), ...counts];

test("a running minute that reaches its threshold opens the spike that it opens when it is over", () => {
  const counts = endingWith(1, 11);
  const running = assessSeries({ ...WATCHED, counts });
  const over = assessSeries({
    ...WATCHED,
    counts,
    tested: [...WATCHED.tested, RUNNING],
    running: RUNNING + 1,
  });
  expect(running.episode).toMatchObject({ openedAt: RUNNING + 1, count: 12, kind: "spike" });
  expect(over.episode).toEqual(running.episode);
  expect([running.countedTo, assessSeries({ ...WATCHED, counts: endingWith(5) }).countedTo]).toEqual([
    RUNNING + 1,
    RUNNING,
  ]);
});

test("a running minute without events is not quiet: it closes nothing and changes no open spike", () => {
  const { episode: opened } = assessSeries({ ...WATCHED, counts: endingWith(30) });
  if (opened === null) throw new Error("no spike");
  const episode = { ...opened, openedAt: RUNNING - 14, lastActiveAt: RUNNING - 14 };
  const outcome = assessSeries({ ...WATCHED, counts: endingWith(0), episode, firstUnjudged: RUNNING });
  expect(outcome).toMatchObject({ past: [], episode: { lastActiveAt: RUNNING - 14 } });
  const next = { tested: [...WATCHED.tested, RUNNING], running: RUNNING + 1 };
  const closed = assessSeries({
    ...WATCHED,
    ...next,
    counts: endingWith(0),
    episode,
    firstUnjudged: RUNNING,
  });
  expect(closed).toMatchObject({ past: [{ closedAt: RUNNING + 1 }], episode: null });
});

test("a running minute makes an open spike graver, and its further events are left to its end", () => {
  const { episode } = assessSeries({ ...WATCHED, counts: endingWith(12) });
  expect(episode?.severity).toBe("warning");
  const grown = assessSeries({ ...WATCHED, counts: endingWith(13), episode });
  expect([grown.episode, grown.countedTo]).toEqual([episode, RUNNING]);
  const graver = assessSeries({ ...WATCHED, counts: endingWith(2_000), episode });
  expect(graver).toMatchObject({ episode: { severity: "critical", peak: 2_000 }, countedTo: RUNNING + 1 });
});

test("the milder notice of a new rule waits for the end of the minute, which may make it a spike", () => {
  const knownOf = () => ({ thresholds: flat(10), firstHour: Math.floor(RUNNING / 60) });
  expect(assessSeries({ ...WATCHED, knownOf, counts: endingWith(40) }).episode).toBeNull();
  expect(assessSeries({ ...WATCHED, knownOf, counts: endingWith(140) }).episode?.kind).toBe("spike");
});

test("a series rises if it would reach its threshold by as much growth as in the last two minutes", () => {
  const isRising = (...counts: number[]) =>
    assessSeries({ ...WATCHED, counts: endingWith(...counts) }).isRising;
  expect([isRising(4), isRising(5), isRising(2, 3)]).toEqual([false, true, true]);
  // An hour at nine tenths of its threshold is usual for many rules, and so are steady events.
  expect([isRising(9, 0, 0, 0, 0), isRising(7, 0, 0, 0, 1), isRising(2, 2, 2, 2)]).toEqual([
    false,
    false,
    false,
  ]);
  expect([isRising(8, 0, 0, 0, 1), isRising(1, 1, 3, 3)]).toEqual([true, true]);
});
