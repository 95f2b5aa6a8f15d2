import fc from "fast-check";
import { expect, test } from "vitest";
import { drawHours } from "#faces/cli/status/status.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const OLDEST = startOfHour(horizonAt(NOW));

test("an hour is sealed, lost, searched, begun, not watched or not yet", () => {
  const statuses = ["unwatched", "gap", "sealed", "searched", "open", "not yet"] as const;
  const hours = statuses.map((status, index) => ({ status, startsAt: OLDEST + index * HOUR_MS }));
  expect(drawHours(NOW, hours)).toBe(`-!█▒░${"·".repeat(68)}`);
});

test("there is a character for every hour the platform may still have, and none for others", () => {
  fc.assert(
    fc.property(fc.nat(10 * HOUR_MS), (offset) => {
      const now = NOW + offset;
      const expected = (startOfHour(now) - startOfHour(horizonAt(now))) / HOUR_MS + 1;
      const strip = drawHours(now, [{ startsAt: NOW - 100 * HOUR_MS, status: "sealed" }]);
      expect(strip).toBe("·".repeat(expected));
      expect([72, 73]).toContain(strip.length);
    }),
  );
});
