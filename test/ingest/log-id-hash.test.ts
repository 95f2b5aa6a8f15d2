import fc from "fast-check";
import { expect, test } from "vitest";
import { hashEventKey, packLogIdHashes, unpackLogIdHashes } from "#model/waf-event.ts";

test("hashes packed behind one another come back in order, eight bytes each", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary" })), (ids) => {
      const hashes = ids.map((logId) => hashEventKey({ occurredAt: 5, logId }));
      const packed = packLogIdHashes(hashes);
      expect(packed).toHaveLength(8 * ids.length);
      expect(unpackLogIdHashes(packed)).toEqual(hashes);
    }),
  );
});

test("a hash is sixteen lower-case hexadecimal digits, a function of time and the id's bytes alone", () => {
  expect(hashEventKey({ occurredAt: 1, logId: "abc" })).toMatch(/^[0-9a-f]{16}$/);
  const spelled = Buffer.from([0xc3, 0xa9]).toString();
  expect(hashEventKey({ occurredAt: 1, logId: "é" })).toBe(hashEventKey({ occurredAt: 1, logId: spelled }));
});

test("two events of one id have a hash each", () => {
  const of = (occurredAt: number) => hashEventKey({ occurredAt, logId: "a" });
  expect(of(1)).not.toBe(of(2));
});

test("a hundred thousand ids, alike as they may be, have a hash each", () => {
  const ids = Array.from({ length: 50_000 }, (_, n) => [String(n), `7c1e5a0e-3b52-4a1d-9d0b-${n}`]).flat();
  expect(new Set(ids.map((logId) => hashEventKey({ occurredAt: 5, logId }))).size).toBe(100_000);
});
