import { expect, test } from "vitest";
import { nextLook } from "#model/covered-hour.ts";
import { compareCounts } from "#proof/rules/compare-counts.ts";
import { isAboveSeal, isAsSealed, toCountsLook } from "#proof/rules/judge-counts.ts";
import { NOW, openHour } from "./some-hours.ts";

type Cells = Readonly<Record<string, number>>;

const toCells = (cells: Cells) => new Map([[NOW, new Map(Object.entries(cells))]]);

/** Compares a sealed hour: what the platform counted at the seal and counts now, and what is stored. */
function compare(stored: Cells, { sealed, now }: { sealed: Cells; now: Cells }) {
  const against = (upstream: Cells) => compareCounts([NOW], toCells(upstream), toCells(stored))[0] ?? never();
  const seen = toCountsLook(against(sealed), toCells(sealed), NOW);
  const hour = openHour(NOW, { state: "sealed", looks: { counts: nextLook(undefined, seen) } });
  const isAs = isAsSealed(hour, against(now), toCells(now));
  return { isAs, isAbove: isAboveSeal(hour, against(now)) };
}

function never(): never {
  throw new Error("nothing was compared");
}

const EXACT = { "942100": 3, "913100": 2 };
const LACKING = { "942100": 2, "913100": 2 };

test.each<[string, Cells, Cells, { isAs: boolean; isAbove: boolean }]>([
  ["the same as at the seal", EXACT, EXACT, { isAs: true, isAbove: false }],
  ["what is stored, as it did not at the seal", LACKING, EXACT, { isAs: false, isAbove: true }],
  ["the events that it dropped before the seal less", LACKING, LACKING, { isAs: true, isAbove: false }],
  ["an event less", EXACT, LACKING, { isAs: false, isAbove: false }],
  ["an event more than are stored", EXACT, { ...EXACT, "913100": 3 }, { isAs: false, isAbove: true }],
  ["an event of another rule less", LACKING, { "942100": 3, "913100": 1 }, { isAs: false, isAbove: true }],
  ["nothing", EXACT, {}, { isAs: false, isAbove: false }],
])(
  "a sealed hour is compared with the counts of its seal: the platform counts %s",
  (_what, sealed, now, expected) => {
    expect(compare(EXACT, { sealed, now })).toEqual(expected);
  },
);

test("a sealed hour is not as it was if it holds other events than at its seal", () => {
  const seen = toCountsLook(
    { startsAt: NOW, upstreamCount: 5, storedCount: 5, differing: [] },
    toCells(EXACT),
    NOW,
  );
  const hour = openHour(NOW, { state: "sealed", looks: { counts: nextLook(undefined, seen) } });
  const [compared = never()] = compareCounts([NOW], toCells(EXACT), toCells({ ...EXACT, "913100": 1 }));
  expect(isAsSealed(hour, compared, toCells(EXACT))).toBe(false);
});
