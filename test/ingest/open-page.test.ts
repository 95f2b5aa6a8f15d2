import fc from "fast-check";
import { expect, test } from "vitest";
import { cutPage, findList, openPage } from "#stages/ingest/open-page.ts";

const envelope = { hasMoreData: true, continuationToken: "a/b=", startToken: null };
const page = (entries: readonly string[], rest: object = envelope) =>
  Buffer.from(`{"logs":[${entries.join(",")}],${JSON.stringify(rest).slice(1)}`);

test("a page that is cut has the entries, records and envelope of the page that is parsed", () => {
  const entry = fc.record({ logId: fc.string({ unit: "binary" }), log: fc.jsonValue(), n: fc.double() });
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1 }), (entries) => {
      const body = page(entries.map((value) => JSON.stringify(value)));
      const parsed = openPage(body, "logs");
      const cut = cutPage(body, "logs");
      try {
        expect(cut?.records.map((_, index) => cut.readPlainEntry(index))).toEqual(
          parsed.records.map((_, index) => parsed.readPlainEntry(index)),
        );
      } catch (thrown) {
        // Nested objects may hold the mark: then a piece must not parse.
        if (!(thrown instanceof SyntaxError)) throw thrown;
        return;
      }
      expect(cut?.records).toEqual(parsed.records);
      expect(cut?.envelope).toEqual(parsed.envelope);
    }),
  );
});

test("a text that looks like the end of an entry makes a piece that does not parse", () => {
  const cut = cutPage(page([`{"log":"},{"}`, `{"log":"}]"}`]), "logs");
  expect(() => cut?.records.map((_, index) => cut.readPlainEntry(index))).toThrow(SyntaxError);
});

test.each([
  ["no entries", `{"logs":[],"hasMoreData":false}`],
  ["another list behind", `{"logs":[{}],"more":[{}]}`],
  ["the list twice", `{"logs":[{}],"l\\u006fgs":[]}`],
  ["spaces", `{"logs" : [{}],"hasMoreData":true}`],
  ["a cut end", `{"logs":[{"a":1},{"a":2}],"hasMo`],
  ["a byte order mark", `\uFEFF{"logs":[{}],"hasMoreData":true}`],
])("the end of a page with %s is not taken for the answer", (_, body) => {
  expect(findList(Buffer.from(body), "logs", ["hasMoreData"])).toBeNull();
});

test("entries are read with every digit of their integers", () => {
  const body = page([`{"logId":12345678901234567890}`]);
  expect(cutPage(body, "logs")?.readEntry(0)).toEqual({ logId: "12345678901234567890" });
  expect(openPage(body, "logs").readEntry(0)).toEqual({ logId: "12345678901234567890" });
});

test("an answer without a list is its own envelope, and invalid JSON has none", () => {
  expect(openPage(Buffer.from(`{"success":false}`), "logs").envelope).toEqual({ success: false });
  expect(openPage(Buffer.from("<html>"), "logs").envelope).toBeUndefined();
});
