import { expect, test } from "vitest";
import { type DetailLine, describeDetails } from "#faces/console/pages/operations-page/describe-details.ts";

/** The lines as a person reads them. */
function read(details: unknown): string[] {
  const draw = (lines: readonly DetailLine[], indent: string): string[] =>
    lines.flatMap(({ label, text, atMs, lines: inner }) => [
      `${indent}${label}${label === "" ? "" : ": "}${atMs === null ? text : "(time)"}`.trimEnd(),
      ...draw(inner, `${indent}  `),
    ]);
  return draw(
    describeDetails(details, (zoneId) => (zoneId === 101 ? "shop" : null)),
    "",
  );
}

test("a member is named as a person names it, and a zone by its name", () => {
  expect(
    read({
      zoneId: 101,
      from: "2026-11-21T00:00:00.000Z",
      ids: true,
      filteredBy: ["ip", "ruleId", "message"],
    }),
  ).toEqual([
    "zone: shop (101)",
    "from: (time)",
    "event by event: yes",
    "filtered by: address, rule, message",
  ]);
  expect(read({ role: "reader", zoneIds: [101, 102], isMasked: false, expiresAt: null })).toEqual([
    "role: reader",
    "zones: shop (101), 102",
    "expires: never",
    "addresses masked: no",
  ]);
});

test("each part of a nested value is a line below its label, with the unit in the value", () => {
  const retention = { rawDays: 30, ipDays: 14, eventDays: 400, rollUpDays: 800 };
  expect(read({ pollEveryMs: 10_000, retention, fallback: { channel: "ops", afterMs: 300_000 } })).toEqual([
    "poll every: 10 s",
    "retention:",
    "  records: 30 days",
    "  addresses: 14 days",
    "  events: 400 days",
    "  roll-ups: 800 days",
    "fallback:",
    "  channel: ops",
    "  after: 5 min",
  ]);
  expect(read({ matchers: { zone: [101], rule: ["942*"] }, reason: "a load test" })).toEqual([
    "reason: a load test",
    "matchers:",
    "  zone: shop (101)",
    "  rule: 942*",
  ]);
});

test("each item of a list of objects is one line", () => {
  const held = [
    { zoneId: 101, events: 5 },
    { zoneId: 103, events: 2 },
  ];
  expect(read({ endedErasures: [], held })).toEqual([
    "ended erasures: none",
    "held back:",
    "  zone shop (101), events 5",
    "  zone 103, events 2",
  ]);
});

test("members come in the order of reading, whatever order Postgres keeps them in", () => {
  const stored = { to: "b", note: "n", from: "a", ids: true, counts: { events: 2 }, zoneId: 102 };
  expect(read(stored)).toEqual([
    "zone: 102",
    "from: a",
    "to: b",
    "event by event: yes",
    "note: n",
    "counts:",
    "  events: 2",
  ]);
});

test("null means all zones or no end where the action means that, and is left out elsewhere", () => {
  expect(read({ zoneId: null, until: null, before: null, mark: "noise" })).toEqual([
    "zone: all",
    "until: no end",
    "mark: noise",
  ]);
});

test("names of Object's prototype, times that do not exist and values that are no object stay as they are", () => {
  expect(read({ constructor: 1, __proto__: 2, toString: "x", at: "2026-13-40T00:00:00Z" })).toEqual([
    "constructor: 1",
    "to string: x",
    "at: 2026-13-40T00:00:00Z",
  ]);
  for (const details of [null, undefined, 3, "text", [1, 2]]) expect(read(details)).toEqual([]);
});

test("a long list, a long text and a deep value are cut, and the lines say so", () => {
  expect(read({ spikeIds: Array.from({ length: 60 }, (_, id) => id) })).toEqual([
    expect.stringMatching(/^spikes: 0, 1, .*, 49, and 10 more$/),
  ]);
  const [long = ""] = read({ reason: "a".repeat(5_000) });
  expect(long.length).toBeLessThan(2_100);
  expect(long.endsWith("…")).toBe(true);
  let deep: unknown = "end";
  for (let level = 0; level < 1_000; level++) deep = level % 2 === 0 ? { inner: deep } : [deep];
  expect(read(deep).length + read({ deep }).length).toBeLessThan(20);
});
