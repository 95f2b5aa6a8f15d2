import fc from "fast-check";
import { expect, test } from "vitest";
import { createPageCursors } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";

const cursors = createPageCursors(Buffer.alloc(32, 1));
const position = fc.array(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), { maxLength: 5 });

test("a cursor leads back to its position on every replica with the secret", () => {
  const replica = createPageCursors(Buffer.alloc(32, 1));
  fc.assert(
    fc.property(fc.string(), position, (list, at) => {
      expect(replica.read(list, cursors.sign(list, at))).toEqual(at);
    }),
  );
});

test("S7: a cursor of another list or another secret is none", () => {
  const cursor = cursors.sign("alerts:101", [7]);

  expect(cursors.read("alerts:102", cursor)).toBeNull();
  expect(createPageCursors(Buffer.alloc(32, 2)).read("alerts:101", cursor)).toBeNull();
});

test("S7: a cursor with any character changed, added or left out is none", () => {
  const cursor = cursors.sign("alerts", [1_700_000_000_000, "9f", null]);
  fc.assert(
    fc.property(fc.nat(cursor.length - 1), fc.string({ maxLength: 2 }), (at, put) => {
      const other = cursor.slice(0, at) + put + cursor.slice(at + 1);
      fc.pre(other !== cursor);
      expect(cursors.read("alerts", other)).toBeNull();
    }),
    { numRuns: 1_000 },
  );
});

test("S7: text that is no cursor is a 400 that names the field", () => {
  expect(cursors.readAfter("alerts", undefined)).toBeNull();
  for (const text of ["", ".", "c1..", "c2.W10.AAAA", "\u0000", "c1.W10.AAAAAAAAAAAAAAAAAAAAAA"])
    expect(() => cursors.readAfter("alerts", text)).toThrow(Refusal);
});
