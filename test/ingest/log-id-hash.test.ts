import fc from "fast-check";
import { expect, test } from "vitest";
import { hashLogId, packLogIdHashes, unpackLogIdHashes } from "../../src/ingest/log-id-hash.ts";

test("hashes packed behind one another come back in order, eight bytes each", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary" })), (ids) => {
      const hashes = ids.map(hashLogId);
      const packed = packLogIdHashes(hashes);
      expect(packed).toHaveLength(8 * ids.length);
      expect(unpackLogIdHashes(packed)).toEqual(hashes);
    }),
  );
});

test("a hash is sixteen lower-case hexadecimal digits, a function of the id's bytes alone", () => {
  expect(hashLogId("")).toBe("e3b0c44298fc1c14");
  expect(hashLogId("abc")).toBe("ba7816bf8f01cfea");
  expect(hashLogId("é")).toBe(hashLogId(Buffer.from([0xc3, 0xa9]).toString()));
});

test("a hundred thousand ids, alike as they may be, have a hash each", () => {
  const ids = Array.from({ length: 50_000 }, (_, n) => [String(n), `7c1e5a0e-3b52-4a1d-9d0b-${n}`]).flat();
  expect(new Set(ids.map(hashLogId)).size).toBe(100_000);
});
