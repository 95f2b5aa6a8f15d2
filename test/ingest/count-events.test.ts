import fc from "fast-check";
import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { countEvents } from "#stages/ingest/count-events.ts";

const event = fc.record({
  ruleId: fc.option(fc.constantFrom("", "1", "1 2", "942100", "\uFFFD")),
  occurredAt: fc.integer({ min: Date.UTC(2026, 10, 20), max: Date.UTC(2026, 10, 20, 3) }),
  feature: fc.option(fc.constant("waf")),
});

test("every event's minute is marked once per rule, and every event counts in its hour", () => {
  fc.assert(
    fc.property(fc.array(event), (events) => {
      const { minutes, hours, hasUnresolved } = countEvents(events);
      expect(hasUnresolved).toBe(events.some(({ feature }) => feature === null));
      const marks = [...minutes].flatMap(([ruleId, touched]) =>
        Array.from(touched, (minute) => JSON.stringify([ruleId, minute])),
      );
      const expected = events.map(({ ruleId, occurredAt }) =>
        JSON.stringify([ruleId ?? "", Math.floor(occurredAt / MINUTE_MS) * MINUTE_MS]),
      );
      expect(marks.sort()).toEqual([...new Set(expected)].sort());
      for (const [hour, count] of hours) {
        const inside = events.filter(({ occurredAt }) => occurredAt >= hour && occurredAt < hour + HOUR_MS);
        expect([hour % HOUR_MS, count]).toEqual([0, inside.length]);
      }
      expect([...hours.values()].reduce((sum, count) => sum + count, 0)).toBe(events.length);
    }),
  );
});
