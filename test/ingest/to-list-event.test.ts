import fc from "fast-check";
import { expect, test } from "vitest";
import { EventLogEntry } from "#adapters/edge/contract/event-log-list.ts";
import { MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/clean-text.ts";
import { toListEvent } from "#stages/ingest/to-list-event.ts";

const AT = 1_793_275_200_123;
const RECORD = {
  ServerZoneId: 11,
  Message: "Path probe blocked",
  Url: "https://shop.example.test/old/.git/config",
  RemoteIp: "203.0.113.*",
  UrlEncodedBody: null,
  Headers: [
    { Name: "Host", Value: "shop.example.test" },
    { Name: "User-Agent", Value: "probe/2.1" },
  ],
  TriggerMatch: { Key: "PMF", Value: "/.git/" },
};
const LABELS = {
  asn: "64500",
  country: "NL",
  ruleId: "930130",
  severity: "",
  method: "GET",
  ruleGroup: "",
  status: "Blocked",
  serverZone: "DE",
};

function read(changed: Record<string, unknown>) {
  const entry = { logId: "7c1e", timestamp: AT, log: JSON.stringify(RECORD), labels: LABELS, ...changed };
  return toListEvent(EventLogEntry.parse(JSON.parse(JSON.stringify(entry))));
}

test("an entry as the platform documents it becomes an event, masked address and all", () => {
  expect(read({})).toEqual({
    occurredAt: AT,
    logId: "7c1e",
    route: "list",
    feature: null,
    ruleId: "930130",
    ip: "203.0.113.*",
    ja4: null,
    ua: "probe/2.1",
    url: RECORD.Url,
    asn: "64500",
    country: "NL",
    action: "block",
    message: "Path probe blocked",
  });
});

const UNKNOWN = { ip: null, ua: null, url: null, message: null };

test.each<[string, unknown]>([
  ["null", null],
  ["absent", undefined],
  ["empty", ""],
  ["prose", "request was blocked"],
  ["a JSON array", "[1,2]"],
  ["a JSON string", '"text"'],
  ["JSON null", "null"],
  ["cut in the middle", '{"Message":"x","Url":'],
  ["nested a hundred thousand deep", "[".repeat(100_000)],
  ["an empty object", "{}"],
])("a log that is %s leaves its values unknown and keeps the labels", (_form, log) => {
  expect(read({ log })).toMatchObject({ ...UNKNOWN, ruleId: "930130", action: "block", occurredAt: AT });
});

test.each<[string, unknown]>([
  ["null", null],
  ["absent", undefined],
  ["empty", {}],
  ["all null", { asn: null, country: null, ruleId: null, status: null }],
  ["all empty", { asn: "", country: "", ruleId: "", status: "" }],
])("labels that are %s are unknown, not empty", (_form, labels) => {
  expect(read({ labels })).toMatchObject({
    asn: null,
    country: null,
    ruleId: null,
    action: null,
    url: RECORD.Url,
  });
});

test.each([
  ["Blocked", "block"],
  ["LOGGED", "log"],
  ["challenged", "challenge"],
  ["Allowed", "allow"],
  ["Bypassed", "bypass"],
  ["RateLimited", "RateLimited"],
  ["403", "403"],
])("the status %s is the action %s", (status, action) => {
  expect(read({ labels: { ...LABELS, status } }).action).toBe(action);
});

test("numbers where strings belong are read as their digits", () => {
  const labels = { ...LABELS, asn: 64_500, ruleId: 930_130, status: 403 };
  expect(read({ logId: 42, labels })).toMatchObject({
    logId: "42",
    asn: "64500",
    ruleId: "930130",
    action: "403",
  });
});

test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
  ["headers that are null", { Headers: null }, { ua: null }],
  ["headers that are text", { Headers: "User-Agent: x" }, { ua: null }],
  ["a header that is null", { Headers: [null, { Name: "user-agent", Value: "a" }] }, { ua: "a" }],
  ["an empty User-Agent", { Headers: [{ Name: "User-Agent", Value: "" }] }, { ua: null }],
  [
    "two User-Agents, of which the first counts",
    {
      Headers: [
        { Name: "USER-AGENT", Value: "1" },
        { Name: "User-Agent", Value: "2" },
      ],
    },
    { ua: "1" },
  ],
  ["a message that is an object", { Message: { a: 1 } }, { message: null, url: RECORD.Url }],
  ["an address that is a list", { RemoteIp: ["1.2.3.4"] }, { ip: null, url: RECORD.Url }],
  ["an address in IPv6 with a zone", { RemoteIp: "fe80::1%eth0" }, { ip: "fe80::1%eth0" }],
  ["NUL and half a character", { Url: "/a\0\ud800" }, { url: "/a\uFFFD\uFFFD" }],
  ["members nobody knows", { Extra: [1], constructor: "x", __proto__: "y" }, { url: RECORD.Url }],
])("a record with %s", (_form, changed, expected) => {
  expect(read({ log: JSON.stringify({ ...RECORD, ...changed }) })).toMatchObject(expected);
});

test("texts longer than a column takes end in an ellipsis", () => {
  const long = "x".repeat(100_000);
  const log = JSON.stringify({
    ...RECORD,
    Url: long,
    RemoteIp: long,
    Message: long,
    Headers: [{ Name: "User-Agent", Value: long }],
  });
  const event = read({ log, labels: { ...LABELS, ruleId: long, status: long } });
  for (const text of [event.url, event.ua, event.message]) expect(text).toHaveLength(MAX_TEXT_CHARS);
  for (const text of [event.ip, event.ruleId, event.action]) expect(text).toHaveLength(MAX_DIMENSION_CHARS);
});

test.each<[string, Record<string, unknown>]>([
  ["seconds as text", { timestamp: "1793275200" }],
  ["milliseconds as text", { timestamp: String(AT) }],
  ["an ISO date", { timestamp: "2026-11-20T00:00:00Z" }],
  ["null", { timestamp: null }],
  ["a fraction", { timestamp: AT + 0.5 }],
  ["before 1970", { timestamp: -1 }],
  ["beyond what a date can be", { timestamp: 8.7e15 }],
  ["no id", { logId: "" }],
  ["an id that is null", { logId: null }],
  ["a log that is an object", { log: RECORD }],
  ["labels that are a list", { labels: [] }],
])("an entry whose time, id or form cannot be trusted does not read: %s", (_form, changed) => {
  const entry = { logId: "7c1e", timestamp: AT, log: null, labels: LABELS, ...changed };
  expect(EventLogEntry.safeParse(entry).success).toBe(false);
});

test("any entry is either refused or becomes an event that can be stored", () => {
  const odd = fc.oneof(fc.jsonValue(), fc.string({ unit: "binary" }), fc.constantFrom("\0", "\ud800"));
  const record = fc.dictionary(fc.constantFrom(...Object.keys(RECORD)), odd);
  const entry = fc.record({
    logId: fc.oneof(fc.string({ minLength: 1 }), fc.nat()),
    timestamp: fc.constant(AT),
    log: fc.oneof(
      fc.constant(null),
      fc.string(),
      record.map((value) => JSON.stringify(value)),
    ),
    labels: fc.option(fc.dictionary(fc.constantFrom(...Object.keys(LABELS)), odd)),
  });
  fc.assert(
    fc.property(entry, (value) => {
      const parsed = EventLogEntry.safeParse(value);
      if (!parsed.success) return;
      const { occurredAt, logId, ...texts } = toListEvent(parsed.data);
      expect([occurredAt, logId]).toEqual([AT, String(value.logId)]);
      for (const text of Object.values(texts)) {
        if (text === null) continue;
        expect(text.length).toBeGreaterThan(0);
        expect(text.isWellFormed() && !text.includes("\0")).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});
