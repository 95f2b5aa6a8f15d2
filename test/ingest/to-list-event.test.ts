import fc from "fast-check";
import { expect, test } from "vitest";
import { toListEvent } from "#ingest/rules/read-page.ts";
import { parseJson } from "#lib/json.ts";
import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/text.ts";
import { EventLog, EventLogEntry } from "#platform/contract/event-logs.ts";
import { readEventTime, Text } from "#platform/contract/values.ts";

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
  const event = toListEvent(JSON.parse(JSON.stringify(entry)));
  if (event === null) throw new Error("the entry is refused");
  return event;
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

test.each([
  ["milliseconds", AT, AT],
  ["milliseconds with a short fraction", AT + 0.25, AT],
  ["milliseconds with a long fraction", 1_793_275_200_123.999, AT],
  ["seconds", 1_793_275_200, 1_793_275_200_000],
  ["seconds with one digit", 1_793_275_200.1, 1_793_275_200_100],
  ["seconds with three digits", 1_793_275_200.123, AT],
  ["seconds with six digits", 1_793_275_200.123_999, AT],
])("a time in %s is read to the millisecond", (_form, timestamp, expected) => {
  expect(read({ timestamp }).occurredAt).toBe(expected);
});

test("seconds with three digits are read exactly, for every millisecond of a second", () => {
  const read = Array.from({ length: 1_000 }, (_, ms) => readEventTime((1_793_275_200_000 + ms) / 1_000));
  expect(read).toEqual(Array.from({ length: 1_000 }, (_, ms) => 1_793_275_200_000 + ms));
});

test("a log that is an object is read as its text is", () => {
  expect(read({ log: RECORD })).toEqual(read({}));
});

test.each<[string, unknown]>([
  ["lower-case keys", [{ name: "user-agent", value: "probe/2.1" }]],
  ["names as keys", { "user-agent": "probe/2.1" }],
])("headers with %s are read", (_form, Headers) => {
  expect(read({ log: JSON.stringify({ ...RECORD, Headers }) }).ua).toBe("probe/2.1");
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
  ["before 1970", { timestamp: -1 }],
  ["beyond what a date can be", { timestamp: 8.7e15 }],
  ["no id", { logId: "" }],
  ["an id that is null", { logId: null }],
  ["labels that are a list", { labels: [] }],
])("an entry whose time, id or form cannot be trusted does not read: %s", (_form, changed) => {
  const entry = { logId: "7c1e", timestamp: AT, log: null, labels: LABELS, ...changed };
  expect(toListEvent(entry)).toBeNull();
});

const text = fc.string({ unit: "binary", maxLength: 12 });
const odd = fc.oneof(
  fc.constantFrom("", null, 0, 7, 1e300, Number.POSITIVE_INFINITY, true, "2024", "\0", "\ud800"),
  fc.jsonValue({ maxDepth: 1 }),
);
/** Mostly what the platform documents, sometimes anything. */
const usually = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 20, arbitrary: value }, { weight: 1, arbitrary: odd });
const header = fc.record({
  Name: usually(fc.constantFrom("Host", "User-Agent", "user-agent", "USER-AGENT", "Cookie")),
  Value: usually(text),
});
const lowerHeader = header.map(({ Name, Value }) => ({ name: Name, value: Value }));
const record = fc.record(
  {
    RemoteIp: usually(fc.constantFrom("203.0.113.7", "203.0.113.*", "::1")),
    Url: usually(text),
    Message: usually(text),
    Headers: usually(fc.array(usually(fc.oneof(header, lowerHeader)), { maxLength: 4 })),
  },
  { requiredKeys: [] },
);
const anyLabel = usually(fc.constantFrom("64500", "NL", "Blocked", "logged", "none"));
const anyEntry = fc.record(
  {
    logId: usually(text),
    timestamp: usually(
      fc.oneof(
        fc.maxSafeInteger(),
        fc.date({ noInvalidDate: true }).map(Number),
        fc.double({ min: 0, max: AT }),
      ),
    ),
    log: usually(
      fc.oneof(
        record,
        record.map((value) => JSON.stringify(value)),
        fc.constantFrom("not JSON", "[]", '"text"', "\ufeff{}"),
      ),
    ),
    labels: usually(
      fc.record(
        { asn: anyLabel, country: anyLabel, ruleId: anyLabel, status: anyLabel, severity: anyLabel },
        { requiredKeys: [] },
      ),
    ),
  },
  { requiredKeys: [] },
);

/** What the platform documents of headers, in either case of the keys, without the reader. */
function toHeaders(headers: unknown): { name: unknown; value: unknown }[] {
  if (!Array.isArray(headers))
    return typeof headers === "object"
      ? Object.entries(headers ?? {}).map(([name, value]) => ({ name, value }))
      : [];
  return headers
    .filter((one: unknown) => typeof one === "object" && one !== null && !Array.isArray(one))
    .map(({ Name, name, Value, value }) => ({ name: Name ?? name, value: Value ?? value }));
}

test("an entry is refused exactly if the contract refuses it, and has the contract's texts otherwise", () => {
  let accepted = 0;
  const property = fc.property(anyEntry, (given) => {
    const event = toListEvent(given);
    const { data } = EventLogEntry.safeParse(given);
    expect(event === null).toBe(data === undefined);
    if (event === null || data === undefined) return;
    accepted += 1;
    const log = EventLog.safeParse(typeof data.log === "string" ? parseJson(data.log) : data.log).data;
    const agents = toHeaders(log?.["Headers"]).filter(
      ({ name }) => String(name).toLowerCase() === "user-agent",
    );
    const agent = agents.map(({ value }) => Text.safeParse(value)).find(({ success }) => success)?.data;
    const known = (value = "") => (value === "" ? null : cleanText(value, MAX_DIMENSION_CHARS));
    expect(event).toMatchObject({
      occurredAt: data.timestamp,
      logId: data.logId,
      ruleId: known(data.labels.ruleId),
      asn: known(data.labels.asn),
      country: known(data.labels.country),
      ip: known(log?.RemoteIp),
      url: known(log?.Url),
      message: known(log?.Message),
      ua: known(agent),
    });
    for (const stored of [event.ruleId, event.action, event.url, event.ua, event.message, event.ip])
      expect(stored === null || (stored !== "" && stored.isWellFormed() && !stored.includes("\0"))).toBe(
        true,
      );
  });
  fc.assert(property, { numRuns: 5_000 });
  expect(accepted).toBeGreaterThan(200);
});
