import { expect, test } from "vitest";
import { createSilenceWatch, type SilenceChange } from "#detection/rules/silence-watch.ts";

const START_HOUR = 480_000;
const DAY = 1_440;

interface Traffic {
  /** Events of the rule in an hour of the day. */
  readonly perHour: (hourOfDay: number) => number;
  /** Minutes since the start without events of the rule. */
  readonly silent: readonly [from: number, to: number];
  /** The same for the whole zone. */
  readonly zoneSilent?: readonly [from: number, to: number];
  readonly isUnknownHour?: (hour: number) => boolean;
  readonly days?: number;
}

/** Plays a rule beside another one of ten events an hour. Returns minutes since the start. */
function play({ perHour, silent, zoneSilent = [0, 0], isUnknownHour, days = 8 }: Traffic) {
  const watch = createSilenceWatch(isUnknownHour);
  const changes: (SilenceChange & { readonly at: number })[] = [];
  const isIn = (minute: number, [from, to]: readonly [number, number]) => minute >= from && minute < to;
  for (let minute = 0; minute < days * DAY; minute += 1) {
    const counts = new Map<string, number>();
    const each = 60 / perHour(Math.floor(minute / 60) % 24);
    if (!isIn(minute, zoneSilent)) {
      if (minute % 6 === 0) counts.set("920100", 1);
      if ((minute % 60) % each < 1 && !isIn(minute, silent)) counts.set("942100", 1);
    }
    for (const change of watch.take(START_HOUR * 60 + minute, counts))
      changes.push({ ...change, since: change.since - START_HOUR * 60, at: minute });
  }
  return changes.filter(({ ruleId }) => ruleId === "942100");
}

const NEVER = [0, 0] as const;
const STEADY = () => 10;
const FROM = 6 * DAY + 600;

test("a steady rule that stops is silent within hours, since its last event, until it has events again", () => {
  const [silent, again, ...others] = play({ perHour: STEADY, silent: [FROM, FROM + 600] });
  expect(silent).toMatchObject({ since: FROM - 6, expected: expect.any(Number) });
  expect((silent?.at ?? 0) - FROM).toBeLessThan(180);
  expect(again).toMatchObject({ since: FROM - 6, expected: null, at: FROM + 600 });
  expect(others).toEqual([]);
});

test.each<[string, Traffic]>([
  ["a rule that goes on is not silent", { perHour: STEADY, silent: NEVER }],
  ["a rule of fewer than fifty events a day is not judged", { perHour: () => 2, silent: [FROM, FROM + DAY] }],
  [
    "a rule with less than four days of history is not judged",
    { perHour: STEADY, silent: [3 * DAY, 3 * DAY + 900], days: 4 },
  ],
  [
    "a rule that sleeps at night is not silent at night",
    { perHour: (hour) => (hour < 8 ? 0.001 : 20), silent: NEVER },
  ],
  [
    "a zone that is silent as a whole has no silent rule",
    { perHour: STEADY, silent: NEVER, zoneSilent: [FROM, FROM + 300] },
  ],
  [
    "hours that are not known are no silence",
    {
      perHour: STEADY,
      silent: [FROM, FROM + 600],
      isUnknownHour: (hour) => hour >= START_HOUR + FROM / 60 && hour < START_HOUR + FROM / 60 + 10,
    },
  ],
])("%s", (_name, traffic) => {
  expect(play(traffic)).toEqual([]);
});
