import fc from "fast-check";
import { expect, test } from "vitest";
import { splitSpan } from "#proof/rules/plan-search.ts";

test("the parts of a span follow one another without gap or overlap, none empty, in order", () => {
  const from = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2026, 11, 31) });
  const width = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 3_700_000 }));
  fc.assert(
    fc.property(from, width, fc.nat(5_000_000), (start, length, total) => {
      const cut = splitSpan(start, start + length, total);
      expect(cut === null).toBe(total <= 5_000 || length < 2);
      const parts = cut ?? [{ from: start, to: start + length }];
      expect(parts[0]?.from).toBe(start);
      expect(parts.at(-1)?.to).toBe(start + length);
      expect(parts.every((part) => part.to > part.from)).toBe(true);
      expect(parts.slice(1).every((part, index) => part.from === parts[index]?.to)).toBe(true);
      expect(parts.length).toBe(cut === null ? 1 : Math.min(Math.ceil(total / 4_000), length));
    }),
    { numRuns: 500 },
  );
});

test.each([
  { total: 0, to: 3_600_000 },
  { total: 5_000, to: 3_600_000 },
  { total: 1_000_000, to: 1 },
])("a span of $to ms with $total events is read whole", ({ total, to }) => {
  expect(splitSpan(0, to, total)).toBeNull();
});
