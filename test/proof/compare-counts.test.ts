import fc from "fast-check";
import { expect, test } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { addGroups, type CountsRead, compareCounts } from "#proof/rules/compare-counts.ts";

const FROM = Date.UTC(2026, 10, 20, 10);
const SPAN = { from: FROM, buckets: 3 };
const start = (): CountsRead => ({ rules: new Set(), cells: new Map(), oldestAt: null });
const group = (ruleId: string, sparkline: readonly number[]) => ({
  key: { ruleId },
  count: sparkline.reduce((sum, events) => sum + events, 0),
  sparkline,
});

test("the cells of every page of groups together are what was counted, hour by hour", () => {
  const rule = fc.tuple(fc.string({ maxLength: 8 }), fc.array(fc.nat(5), { minLength: 3, maxLength: 3 }));
  const rules = fc.uniqueArray(rule, { selector: ([name]) => name.toWellFormed().replaceAll("\0", "?") });
  fc.assert(
    fc.property(rules, fc.integer({ min: 1, max: 4 }), (given, pageSize) => {
      const read = start();
      for (let at = 0; at < given.length; at += pageSize) {
        addGroups(
          read,
          given.slice(at, at + pageSize).map(([name, line]) => group(name, line)),
          SPAN,
        );
      }
      for (let hour = 0; hour < 3; hour++) {
        const expected = given.reduce((sum, [, line]) => sum + (line[hour] ?? 0), 0);
        const cells = read.cells.get(FROM + hour * HOUR_MS) ?? new Map<string, number>();
        expect([...cells.values()].reduce((sum, events) => sum + events, 0)).toBe(expected);
      }
      expect(read.rules.size).toBe(given.length);
    }),
  );
});

test.each([
  ["a rule that comes twice", [group("1", [1, 0, 0]), group("1", [1, 0, 0])]],
  ["buckets that do not add up", [{ ...group("1", [1, 0, 0]), count: 2 }]],
  ["fewer buckets than were asked for", [group("1", [1, 0])]],
  ["no buckets", [{ key: { ruleId: "1" }, count: 1, sparkline: null }]],
  ["a group that is none", ["1"]],
])("counts with %s prove nothing", (_what, groups) => {
  expect(() => addGroups(start(), groups, SPAN)).toThrow(
    expect.objectContaining({ code: "COUNTS_UNREADABLE", disposition: "retry" }),
  );
});

test("rules that are one here are counted as one, and a rule without a name under ''", () => {
  const read = start();
  const nameless = { key: null, count: 2, sparkline: [2, 0, 0] };
  addGroups(read, [group("a\0", [1, 0, 0]), group("a\uFFFD", [1, 0, 0]), nameless], SPAN);
  expect(read.cells.get(FROM)).toEqual(
    new Map([
      ["a\uFFFD", 2],
      ["", 2],
    ]),
  );
});

test("a cell differs exactly where the two sides' counts do, whichever side does not know it", () => {
  const side = fc.dictionary(fc.constantFrom("a", "b", "c", "d", ""), fc.integer({ min: 1, max: 3 }));
  fc.assert(
    fc.property(side, side, (there, here) => {
      const maps = [there, here].map((one) => new Map([[FROM, new Map(Object.entries(one))]]));
      const [upstream = new Map(), stored = new Map()] = maps;
      const [hour, empty] = compareCounts([FROM, FROM + HOUR_MS], upstream, stored);
      const total = (side: Record<string, number>) => Object.values(side).reduce((sum, n) => sum + n, 0);
      expect(hour).toMatchObject({ upstreamCount: total(there), storedCount: total(here) });
      const differing = new Map(hour?.differing.map((cell) => [cell.ruleId, cell]));
      for (const rule of ["a", "b", "c", "d", ""]) {
        const [upstreamCount, storedCount] = [there[rule] ?? 0, here[rule] ?? 0];
        const expected =
          upstreamCount === storedCount ? undefined : { ruleId: rule, upstreamCount, storedCount };
        expect(differing.get(rule)).toEqual(expected);
      }
      expect(empty).toEqual({ startsAt: FROM + HOUR_MS, upstreamCount: 0, storedCount: 0, differing: [] });
    }),
  );
});
