import { expect, test } from "vitest";
import { type BacktestOptions, createBacktest } from "#detection/rules/backtest/backtest.ts";
import { drawCounts } from "./support/histories.ts";
import { findEpisodes } from "./support/scan-history.ts";

const FIRST = 20_000 * 1_440;
const DAY = 1_440;

/** Rows as a file has them: minutes with events only, sorted by time or by series. */
function replay(
  all: Record<string, readonly number[]>,
  by: "time" | "series",
  options: Partial<BacktestOptions> = {},
) {
  const rows = Object.entries(all).flatMap(([series, counts]) =>
    counts.flatMap((count, at) => (count > 0 ? [{ series, minute: FIRST + at, count }] : [])),
  );
  if (by === "time") rows.sort((a, b) => a.minute - b.minute);
  const backtest = createBacktest({ z: 3.5, ...options });
  for (const { series, minute, count } of rows) expect(backtest.take(series, minute, count)).toBeUndefined();
  return backtest.report();
}

const shape = {
  firstMinute: FIRST,
  hours: 240,
  daily: true,
  burstShare: 0.001,
  burstFactor: 60,
  silentShare: 0,
};
const bursty = Object.fromEntries(
  [0.05, 0.5, 4].map((perMinute, seed) => [`r${seed}`, drawCounts({ ...shape, perMinute, seed })]),
);

/** Steady traffic from the first minute on. */
const steady = (minutes: number, count = 5): number[] => Array.from({ length: minutes }, () => count);

test("the alerts are the episodes of each series, whichever way the rows are sorted", () => {
  const bySeries = replay(bursty, "series");
  expect(bySeries.alerts.length).toBeGreaterThan(5);
  const spans = (report: typeof bySeries) =>
    report.alerts.map(({ series, fromMinute, toMinute }) => ({ series, fromMinute, toMinute }));
  const inOrder = spans(bySeries).toSorted(
    (a, b) => a.series.localeCompare(b.series) || a.fromMinute - b.fromMinute,
  );
  const byTime = spans(replay(bursty, "time"));
  expect(byTime.toSorted((a, b) => a.series.localeCompare(b.series) || a.fromMinute - b.fromMinute)).toEqual(
    inOrder,
  );

  const expected = Object.entries(bursty).flatMap(([series, counts]) =>
    findEpisodes(counts, FIRST, { z: 3.5 })
      .filter(({ openedAt }) => openedAt > FIRST + DAY)
      .map(({ openedAt, lastActiveAt }) => ({ series, fromMinute: openedAt - 1, toMinute: lastActiveAt })),
  );
  expect(inOrder.filter(({ fromMinute }) => fromMinute >= FIRST + DAY)).toEqual(expected);
});

test("a minute is in alert from the one that reached its threshold to the last that was not quiet", () => {
  const counts = steady(3 * DAY);
  for (let i = 0; i < 10; i += 1) counts[2 * DAY + 30 + i] = 200;
  const { alerts, alertMinutes } = replay({ r: counts }, "series");
  expect(alerts).toMatchObject([{ series: "r", fromMinute: FIRST + 2 * DAY + 30, isOpen: false }]);
  const closedAt = findEpisodes(counts, FIRST, { z: 3.5 }).at(-1)?.closedAt ?? 0;
  expect(alerts[0]?.toMinute).toBe(closedAt - 15);
  expect(alertMinutes).toBe((alerts[0]?.toMinute ?? 0) - FIRST - 2 * DAY - 30);
});

test("everyday traffic at the beginning raises no alert, and neither do a rule's first events on its first day", () => {
  const late = [...steady(5 * 60, 0), ...steady(2 * DAY, 1)];
  expect(replay({ dense: steady(2 * DAY), late }, "time").alerts).toEqual([]);
  const later = [...steady(DAY + 60, 0), ...steady(2 * DAY, 1)];
  expect(replay({ dense: steady(3 * DAY), later }, "time")).toMatchObject({
    alerts: [{ series: "later", episode: { kind: "new-rule" } }],
    newRules: 1,
  });
});

test("a burst at the very beginning of a record is an alert where the day after it stays quiet", () => {
  const burst = [...steady(4, 20), ...steady(3 * DAY, 0)];
  const trickle: number[] = steady(3 * DAY, 0).map((_, i) => (i % 90 === 0 ? 1 : 0));
  for (let i = 0; i < 6; i += 1) trickle[100 + i] = 5;
  const late: number[] = [...steady(400, 0), ...steady(3, 8), ...steady(2 * DAY, 0)];
  for (const startMinute of [undefined, FIRST]) {
    const { alerts } = replay({ dense: steady(3 * DAY), burst, trickle, late }, "time", { startMinute });
    expect(alerts.map(({ series, fromMinute }) => [series, fromMinute - FIRST])).toEqual([
      ["burst", 0],
      ["trickle", 101],
      ["late", 401],
    ]);
  }
});

test("a record too short to learn from is judged throughout", () => {
  expect(replay({ r: [40, 0, 0, 0] }, "series").alerts).toHaveLength(1);
});

test("counts before the start are history, and counts after the end are ignored", () => {
  const counts = steady(4 * DAY);
  for (const at of [1.5, 2.5, 3.5]) for (let i = 0; i < 5; i += 1) counts[at * DAY + i] = 300;
  const options = { startMinute: FIRST + 2 * DAY, endMinute: FIRST + 3 * DAY };
  const report = replay({ r: counts }, "series", options);
  expect(report.alerts.map(({ fromMinute }) => fromMinute)).toEqual([FIRST + 2.5 * DAY]);
  expect(report).toMatchObject({ series: 1, seriesDays: 1, alertsPerSeriesDay: 1, rows: 3 * DAY });
  // An alert over the start counts with what lies within.
  const cut = replay({ r: counts }, "series", { startMinute: FIRST + 2.5 * DAY + 2 });
  expect(cut.alerts[0]?.fromMinute).toBe(FIRST + 2.5 * DAY + 2);
});

test("a row that breaks the order of its series is refused with the minute it must come after", () => {
  const backtest = createBacktest({ z: 3.5 });
  expect(backtest.take("a", 100, 1)).toBeUndefined();
  expect(backtest.take("b", 90, 1)).toBeUndefined();
  expect(backtest.take("a", 100, 1)).toBe(100);
  expect(backtest.take("a", 99, 1)).toBe(100);
  expect(backtest.take("a", 101, 1)).toBeUndefined();
});

test("no rows are no alerts", () => {
  expect(createBacktest({ z: 3.5 }).report()).toMatchObject({ series: 0, alerts: [], alertsPerSeriesDay: 0 });
});
