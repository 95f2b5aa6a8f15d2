import fc from "fast-check";
import { expect, test } from "vitest";
import { sliceEntries } from "#model/slice-entries.ts";
import { entryBytes } from "#stages/ingest/entry-bytes.ts";
import { hashPage } from "#stages/ingest/hash-page.ts";

const texts = fc.array(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  { maxLength: 6 },
);

function pageOf(entries: readonly string[], token: string, separator = ",") {
  const body = Buffer.from(`{"logs":[${entries.join(separator)}],"continuationToken":"${token}"}`);
  return { body, records: sliceEntries(body, "logs") ?? [] };
}

test("a page's hash depends on its entries only, not on its token", () => {
  fc.assert(
    fc.property(texts, fc.string({ unit: "grapheme-ascii" }), (entries, token) => {
      const one = pageOf(entries, "");
      const other = pageOf(entries, JSON.stringify(token).slice(1, -1));
      expect(hashPage(one.records, one.body)).toEqual(hashPage(other.records, other.body));
    }),
  );
});

test("pages with other entries have other hashes, also where the entries are copies in shared memory", () => {
  fc.assert(
    fc.property(texts, texts, (some, others) => {
      const isSame = JSON.stringify(some) === JSON.stringify(others);
      const one = pageOf(some, "t");
      const other = pageOf(others, "t");
      expect(hashPage(one.records, one.body).equals(hashPage(other.records, other.body))).toBe(isSame);
      const [copies, otherCopies] = [some, others].map((all) => all.map((text) => Buffer.from(text)));
      const isSameText = some.join("") === others.join("");
      expect(hashPage(copies ?? [], one.body).equals(hashPage(otherCopies ?? [], other.body))).toBe(
        isSameText,
      );
    }),
  );
});

test("entries that cannot be cut out of the body are written again, one for one", () => {
  const body = Buffer.from(`{"l\\u006fgs":[ {"a" : 1}, null ]}`);
  const { logs } = JSON.parse(body.toString()) as { logs: unknown[] };
  expect(entryBytes(body, "logs", logs).map(String)).toEqual([`{"a":1}`, "null"]);
});
