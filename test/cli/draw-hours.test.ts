import fc from "fast-check";
import { expect, test } from "vitest";
import { drawHours } from "../../src/cli/draw-hours.ts";
import { HOUR_MS, horizonAt, startOfHour } from "../../src/coverage/horizon.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const OLDEST = startOfHour(horizonAt(NOW));

test("an hour is sealed, lost, searched, begun or not yet", () => {
  const open = { state: "open", searchedThrough: null } as const;
  const hours = [
    { ...open, startsAt: OLDEST, state: "gap" as const, searchedThrough: OLDEST + HOUR_MS },
    { ...open, startsAt: OLDEST + HOUR_MS, state: "sealed" as const },
    { ...open, startsAt: OLDEST + 2 * HOUR_MS, searchedThrough: OLDEST + 3 * HOUR_MS },
    { ...open, startsAt: OLDEST + 3 * HOUR_MS, searchedThrough: OLDEST + 4 * HOUR_MS - 1 },
    { ...open, startsAt: OLDEST + 4 * HOUR_MS },
    { ...open, startsAt: startOfHour(NOW), searchedThrough: NOW },
  ];
  expect(drawHours(NOW, hours)).toBe(`!█▒░${"·".repeat(68)}░`);
});

test("there is a character for every hour the platform may still have, and none for others", () => {
  fc.assert(
    fc.property(fc.nat(10 * HOUR_MS), (offset) => {
      const now = NOW + offset;
      const expected = (startOfHour(now) - startOfHour(horizonAt(now))) / HOUR_MS + 1;
      const strip = drawHours(now, [
        { startsAt: NOW - 100 * HOUR_MS, state: "sealed", searchedThrough: NOW },
      ]);
      expect(strip).toBe("·".repeat(expected));
      expect([72, 73]).toContain(strip.length);
    }),
  );
});
