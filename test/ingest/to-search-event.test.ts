import fc from "fast-check";
import { expect, test } from "vitest";
import { toSearchEvent } from "#ingest/rules/read-page.ts";
import { DIMENSIONS, EventRow } from "#platform/contract/event-logs.ts";

const AT = 1_793_275_200_123;
const FIELDS = {
  feature: "waf",
  ruleId: "942100",
  ip: "203.0.113.7",
  ja4: "t13d1516h2_8daaf6152771_b186095e22b6",
  ua: "probe/2.1",
  url: "https://shop.example.test/",
  asn: "64500",
  country: "NL",
  action: "block",
};

function read(changed: Record<string, unknown>) {
  const row = { logId: "7c1e", timestamp: AT, log: { Message: "seen" }, fields: FIELDS, ...changed };
  return toSearchEvent(EventRow.parse(JSON.parse(JSON.stringify(row))));
}

test("a row as the platform documents it becomes an event with every dimension", () => {
  expect(read({})).toEqual({ occurredAt: AT, logId: "7c1e", route: "search", message: "seen", ...FIELDS });
});

test.each<[string, unknown]>([
  ["null", null],
  ["absent", undefined],
  ["empty", {}],
  ["all null", Object.fromEntries(DIMENSIONS.map((name) => [name, null]))],
])("fields that are %s are known to be empty", (_form, fields) => {
  const { occurredAt, logId, route, message, ...dimensions } = read({ fields });
  expect([occurredAt, logId, route, message]).toEqual([AT, "7c1e", "search", "seen"]);
  expect(Object.keys(dimensions).sort()).toEqual([...DIMENSIONS].sort());
  expect(new Set(Object.values(dimensions))).toEqual(new Set([""]));
});

test.each<[string, unknown, string | null]>([
  ["null", null, null],
  ["absent", undefined, null],
  ["text that is no JSON", "prose", null],
  ["a list", [1], null],
  ["an object without a message", {}, ""],
  ["an object whose message is a list", { Message: [1] }, ""],
  ["an object whose message is a number", { Message: 7 }, "7"],
  ["the record as JSON text, as in the list", '{"Message":"as text"}', "as text"],
  ["an object with NUL and half a character", { Message: "\0\ud800" }, "\uFFFD\uFFFD"],
])("the message of a log that is %s", (_form, log, message) => {
  expect(read({ log }).message).toBe(message);
});

test("numbers where strings belong are read as their digits, and unknown fields are passed over", () => {
  const fields = { ...FIELDS, asn: 64_500, ruleId: 942_100, severity: "x", constructor: "y" };
  expect(read({ fields })).toEqual(read({}));
});

test("any row is either refused or becomes an event that can be stored", () => {
  const odd = fc.oneof(fc.jsonValue(), fc.string({ unit: "binary" }), fc.constantFrom("\0", "\ud800"));
  const row = fc.record({
    logId: fc.string({ minLength: 1 }),
    timestamp: fc.constant(AT),
    log: fc.oneof(odd, fc.record({ Message: odd })),
    fields: fc.option(fc.dictionary(fc.constantFrom(...DIMENSIONS), odd)),
  });
  fc.assert(
    fc.property(row, (value) => {
      const parsed = EventRow.safeParse(value);
      if (!parsed.success) return;
      const { occurredAt, logId, route, message, ...dimensions } = toSearchEvent(parsed.data);
      expect([occurredAt, logId, route]).toEqual([AT, value.logId, "search"]);
      for (const text of [message ?? "", ...Object.values(dimensions)]) {
        expect(text?.isWellFormed() === true && !text.includes("\0")).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});
