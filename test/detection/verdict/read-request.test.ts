import fc from "fast-check";
import { expect, test } from "vitest";
import { readRequest } from "#stages/detection/verdict/read-request.ts";

const URL_ = "https://shop.example/search?q=1";
const header = (Name: string, Value: unknown) => ({ Name, Value });
const logOf = (log: object = {}) => ({
  Url: URL_,
  Headers: [
    header("Host", "shop.example"),
    header("cookie", "sid=1"),
    header("Referer", "https://shop.example/list"),
  ],
  TriggerMatch: { Key: "ARGS:title", Value: "a -- b" },
  ...log,
});
const entryOf = (log: object = {}, labels: object = { method: "post" }) => ({
  labels,
  log: JSON.stringify(logOf(log)),
});
const read = (record: unknown, url = URL_) => readRequest(Buffer.from(JSON.stringify(record)), url);

test("an entry of the list says everything, a row of a search everything but the method", () => {
  const facts = {
    method: "POST",
    parameter: "ARGS:title",
    matched: "a -- b",
    hasSession: true,
    hasOwnReferer: true,
  };
  expect(read(entryOf())).toEqual(facts);
  expect(read({ fields: {}, log: logOf() })).toEqual({ ...facts, method: "" });
});

test.each([
  ["ARGS:title", true],
  ["ARGS_NAMES", true],
  ["ARGS_POST:a.b", true],
  ["REQUEST_COOKIES:consent", true],
  ["REQUEST_HEADERS:User-Agent", true],
  ["REQUEST_URI", true],
  ["request_body", true],
  ["PMF", false],
  ["RX", false],
  ["@detectSQLi", false],
  ["TX:extension", false],
  ["MATCHED_VAR", false],
  ["REQUEST_URI_X", false],
  ["", false],
  [7, false],
])("the trigger %j names a parameter: %s", (Key, isParameter) => {
  expect(read(entryOf({ TriggerMatch: { Key, Value: "x" } })).parameter).toBe(isParameter ? Key : null);
});

test.each([
  ["no headers", [], null, null],
  ["no list", null, null, null],
  ["only broken ones", [null, 7, header("Cookie", 7)], null, null],
  ["others", [header("Accept", "*/*")], false, false],
  ["an empty cookie", [header("Cookie", "")], false, false],
  ["credentials", [header("AUTHORIZATION", "Bearer x")], true, false],
  ["the referer of another host", [header("Referer", "https://shop.example.evil.example/")], false, false],
  ["a referer with a user", [header("Referer", "https://shop.example@evil.example/")], false, false],
])("with %s, session and own referer are known as they are", (_, Headers, hasSession, hasOwnReferer) => {
  expect(read(entryOf({ Headers }))).toMatchObject({ hasSession, hasOwnReferer });
});

test("without a host in the URL the Host header says it, and without both nobody does", () => {
  expect(read(entryOf(), "/search").hasOwnReferer).toBe(true);
  expect(
    read(entryOf({ Headers: [header("Referer", "https://shop.example/")] }), "/search").hasOwnReferer,
  ).toBeNull();
});

test("texts are cut and can be stored", () => {
  const facts = read(
    entryOf({ TriggerMatch: { Key: `ARGS:${"k".repeat(9_000)}`, Value: `\0${"v".repeat(9_000)}` } }),
  );
  expect(facts.parameter).toHaveLength(200);
  expect(facts.matched).toHaveLength(4_096);
  expect(facts.matched).not.toContain("\0");
});

test("nothing is known of a record that cannot be read", () => {
  const nothing = { method: "", parameter: null, matched: null, hasSession: null, hasOwnReferer: null };
  for (const text of [
    "",
    "{",
    "[]",
    "null",
    '"x"',
    '{"log":"{"}',
    '{"log":[],"labels":7}',
    '{"log":{"Headers":{"a":1}}}',
  ])
    expect(readRequest(Buffer.from(text), URL_)).toEqual(nothing);
});

test("no record makes it fail", () => {
  const json = fc.json();
  const log = fc.record({ Headers: fc.jsonValue(), TriggerMatch: fc.jsonValue() }, { requiredKeys: [] });
  fc.assert(
    fc.property(
      fc.oneof(
        json,
        fc.string(),
        log.map((value) => JSON.stringify({ log: value })),
      ),
      fc.string(),
      (text, url) => {
        expect(Object.keys(readRequest(Buffer.from(text), url))).toHaveLength(5);
      },
    ),
  );
});
