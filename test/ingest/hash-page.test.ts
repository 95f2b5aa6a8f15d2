import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { cutEntries, hashEntries } from "#ingest/rules/read-page.ts";
import { sliceEntries } from "#lib/json.ts";

const texts = fc.array(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  { maxLength: 6 },
);

function cut(entries: readonly string[], token: string) {
  const body = Buffer.from(`{"logs":[${entries.join(",")}],"continuationToken":"${token}"}`);
  return sliceEntries(body, "logs")?.items ?? [];
}

test("a page's hash depends on its entries only, not on its token", () => {
  fc.assert(
    fc.property(texts, fc.string({ unit: "grapheme-ascii" }), (entries, token) => {
      const other = cut(entries, JSON.stringify(token).slice(1, -1));
      expect(hashEntries(cut(entries, ""))).toEqual(hashEntries(other));
    }),
  );
});

test("pages with other entries have other hashes", () => {
  fc.assert(
    fc.property(texts, texts, (some, others) => {
      const isSame = JSON.stringify(some) === JSON.stringify(others);
      expect(hashEntries(cut(some, "t")).equals(hashEntries(cut(others, "t")))).toBe(isSame);
    }),
  );
});

test("a page's hash is the SHA-256 of its entries as an earlier version hashed them, with commas between them", () => {
  const expected = createHash("sha256").update('{"a":1},{"b":2}').digest();
  expect(hashEntries([Buffer.from('{"a":1}'), Buffer.from('{"b":2}')])).toEqual(expected);
});

test("entries that cannot be cut out of the body are written again, one for one", () => {
  const body = Buffer.from(`{"l\\u006fgs":[ {"a" : 1}, null ]}`);
  const { logs } = JSON.parse(body.toString()) as { logs: unknown[] };
  expect(cutEntries(body, "logs", logs).map(String)).toEqual([`{"a":1}`, "null"]);
});
