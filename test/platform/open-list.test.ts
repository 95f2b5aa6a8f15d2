import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "#lib/json.ts";
import { openList } from "#platform/transport/exchange.ts";

test("the entries of any answer stand in it byte for byte, and the rest is the answer without them", () => {
  const answer = fc.record({
    logs: fc.array(fc.jsonValue()),
    more: fc.array(fc.jsonValue()),
    token: fc.string(),
  });
  fc.assert(
    fc.property(answer, fc.constantFrom(undefined, 1, "\t"), (value, space) => {
      const body = Buffer.from(JSON.stringify(value, null, space));
      const { json, entries } = openList(body, "logs");
      const received = parseJson(body.toString()) as typeof value;
      expect(json).toEqual({ ...received, logs: [] });
      expect(entries.map((entry) => parseJson(entry.toString()))).toEqual(received.logs);
      for (const entry of entries) expect(body.includes(entry)).toBe(true);
    }),
  );
});

test("an answer with a list whose name is written with escapes has its entries, written again", () => {
  for (const body of [
    `{"l\\u006fgs":[ {"a" : 1}, null ]}`,
    `{"logs":[7],"l\\u006fgs":[ {"a" : 1}, null ]}`,
  ]) {
    const { json, entries } = openList(Buffer.from(body), "logs");
    expect(json).toEqual({ logs: [] });
    expect(entries.map(String)).toEqual([`{"a":1}`, "null"]);
  }
});

test.each([
  ["cut in an entry", `{"logs":[{"a":1},{"a":`],
  ["cut behind the entries", `{"logs":[{"a":1}],"hasMo`],
  ["with an entry that is not closed", `{"logs":[{"a":1,{"b":2}],"hasMoreData":false}`],
  ["that is HTML", "<html>"],
])("an answer %s is no JSON", (_form, body) => {
  expect(openList(Buffer.from(body), "logs").json).toBeUndefined();
});

test("an answer without the list has no entries, and is itself", () => {
  expect(openList(Buffer.from(`{"success":false}`), "logs")).toEqual({
    json: { success: false },
    entries: [],
  });
});
