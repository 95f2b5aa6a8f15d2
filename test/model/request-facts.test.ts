import fc from "fast-check";
import { expect, test } from "vitest";
import { FACT_NAMES, NO_FACTS, packFacts, readRequest, unpackFacts } from "#model/request-facts.ts";

const URL_ = "https://shop.example/search?q=1";
const header = (Name: string, Value: unknown) => ({ Name, Value });
const logOf = (log: object = {}) => ({
  Url: URL_,
  UrlEncodedBody: "title=a",
  Headers: [
    header("Host", "shop.example"),
    header("CDN-RequestId", "0d5b2f4c"),
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
const OF = { url: URL_, ua: "Mozilla/5.0", ruleId: "942440" };
const readText = (text: string, of: Partial<typeof OF> = {}) =>
  readRequest(Buffer.from(text), { ...OF, ...of }, "key");
const read = (record: unknown, url = URL_) => readText(JSON.stringify(record), { url });

test("an entry of the list says everything, a row of a search everything but the method", () => {
  const facts = {
    method: "POST",
    parameter: "ARGS:title",
    matched: "a -- b",
    requestId: "0d5b2f4c",
    matchedKey: expect.any(Number) as number,
    hasSession: true,
    hasOwnReferer: true,
    hasIdiom: false,
    isTool: false,
    hasBody: true,
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
  const nothing = { ...NO_FACTS, parameter: null, matched: null };
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
    expect(readText(text, { url: "/", ua: "" })).toEqual(nothing);
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
        expect(Object.keys(readText(text, { url })).toSorted()).toEqual(
          [...Object.keys(NO_FACTS), "parameter", "matched"].toSorted(),
        );
      },
    ),
  );
});

test("facts are the same after packing, and a number without bits holds none", () => {
  const fact = fc.constantFrom(true, false, null);
  fc.assert(
    fc.property(fc.tuple(fact, fact, fact, fact, fact), (facts) => {
      const named = Object.fromEntries(FACT_NAMES.map((name, place) => [name, facts[place] ?? null]));
      expect(unpackFacts(packFacts(named as ReturnType<typeof unpackFacts>))).toEqual(named);
    }),
  );
  const unknown = Object.fromEntries(FACT_NAMES.map((name) => [name, null]));
  expect(unpackFacts(null)).toEqual(unknown);
  expect(unpackFacts(0)).toEqual(unknown);
});

test("equal matches have equal keys, which need the hash key to be computed", () => {
  const keyOf = (Value: string, Key = "ARGS:a", hashKey = "key") =>
    readRequest(Buffer.from(JSON.stringify(entryOf({ TriggerMatch: { Key, Value } }))), OF, hashKey)
      .matchedKey;
  expect(keyOf("' or 1=1")).toBe(keyOf("' or 1=1"));
  for (const other of [keyOf("' or 2=2"), keyOf("' or 1=1", "ARGS:b"), keyOf("' or 1=1", "ARGS:a", "other")])
    expect(other).not.toBe(keyOf("' or 1=1"));
});

test.each([
  ["Mozilla/5.00 (Nikto/2.1.6)", "942440", true],
  ["sqlmap/1.7#stable (https://sqlmap.org)", "942440", true],
  ["Mozilla/5.0 (compatible; Nmap Scripting Engine)", "942440", true],
  ["curl/8.1.2", "942440", false],
  ["curl/8.1.2", "913100", true],
  ["curl/8.1.2", "913120", true],
  ["curl/8.1.2", "913101", false],
  ["", "942440", null],
])("the user agent %j with rule %s is a tool: %s", (ua, ruleId, isTool) => {
  expect(readText(JSON.stringify(entryOf()), { ua, ruleId }).isTool).toBe(isTool);
});

test.each([
  ["https://shop.example/a?f=../../../etc/passwd", {}, true],
  ["https://shop.example/a", { TriggerMatch: { Key: "ARGS:x", Value: "${jndi:ldap://x}" } }, true],
  ["https://shop.example/a", { TriggerMatch: null }, null],
])("whether the request to %s with %j holds an idiom: %s", (url, log, hasIdiom) => {
  expect(read(entryOf(log), url).hasIdiom).toBe(hasIdiom);
});
