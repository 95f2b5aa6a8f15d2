import fc from "fast-check";
import { expect, test } from "vitest";
import { checkWindow as checkArchiveWindow, readSearch } from "#archive/rules/query/read-search.ts";
import { readSearch as readNaively, type Search } from "#emulator/query/request.ts";
import { checkWindow } from "#emulator/routes/search-event-logs.ts";
import { HOUR_MS } from "#lib/units.ts";
import { comparable, difference, readBack } from "../archive/comparable.ts";
import { openArchive, post } from "../archive/support.ts";
import { draws } from "../support/sample.ts";
import { requestTexts } from "./draw-requests.ts";
import { NOW } from "./support.ts";

type Kind = keyof typeof requestTexts;
/** The fields that break a rule, in the order in which they are named, or the request with its defaults and clamps. */
type Reading = { readonly refused: readonly string[] } | { readonly search: Search };

const KINDS: readonly Kind[] = ["search", "export"];
const RETENTION_DAYS = 400;
const WINDOW = { from: NOW - HOUR_MS, to: NOW };

/** Postgres holds neither NUL nor lone surrogates, so the archive replaces them in what it stores and in what it is asked. */
function asStored(text: string): string {
  return text.replaceAll("\0", "\uFFFD").toWellFormed();
}

function emulatorReading(body: unknown, kind: Kind): Reading {
  const read = readNaively(body, kind);
  if ("mistakes" in read) return { refused: Object.keys(read.mistakes) };
  const outside = checkWindow(read.search, NOW);
  if (outside !== undefined) return { refused: Object.keys(outside) };
  const { query, filters, ...rest } = read.search;
  const stored = filters.map((filter) => ({ ...filter, value: filter.value.map(asStored) }));
  return { search: { ...rest, query: asStored(query), filters: stored } };
}

function archiveReading(body: unknown, kind: Kind): Reading {
  const read = readSearch(body, kind);
  if ("mistakes" in read) return { refused: Object.keys(read.mistakes) };
  const outside = checkArchiveWindow(read.search, { nowMs: NOW, retentionDays: RETENTION_DAYS });
  return outside === null ? (read as Reading) : { refused: Object.keys(outside) };
}

/** The end of the window lies before the platform's 72 hours: the one thing on which the two differ by design. */
function isOnlyOld(reading: Reading): boolean {
  return "search" in reading && reading.search.to < NOW - 72 * HOUR_MS;
}

test.each(KINDS)(
  "the emulator and the archive read random %s bodies alike, and name the same fields of those that they refuse",
  (kind) => {
    const seen = { accepted: 0, refused: 0, old: 0 };
    fc.assert(
      fc.property(requestTexts[kind], (text) => {
        const body: unknown = JSON.parse(text);
        const [theirs, ours] = [emulatorReading(body, kind), archiveReading(body, kind)];
        const isOld = isOnlyOld(ours);
        seen[isOld ? "old" : "search" in ours ? "accepted" : "refused"]++;
        expect(theirs).toEqual(isOld ? { refused: ["to"] } : ours);
      }),
      { numRuns: draws(500, 2_000) },
    );
    // The comparison says little unless each kind of reading is drawn often.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(15);
  },
);

const filter = { field: "url", op: "in", value: ["a"] };
function repeat<Item>(count: number, item: Item): Item[] {
  return Array.from({ length: count }, () => item);
}
const cidr = (...value: string[]) => ({ filters: [{ field: "ip", op: "cidr", value }] });

/** Both answers to a body: "accepted", or the fields that the answer names. */
function verdictOf(reading: Reading): string {
  return "search" in reading ? "accepted" : reading.refused.join(", ");
}

test.each([
  // Spec 2.3: `from` is an int64. The archive used to refuse every `from` before 1970 and beyond 2^53.
  { name: "a window that starts before 1970", body: { from: -1 }, verdict: "accepted" },
  { name: "the least int64 as start", body: { from: -(2 ** 63) }, verdict: "accepted" },
  { name: "a start that is less than any int64", body: { from: -(2 ** 63) - 4_096 }, verdict: "from" },
  { name: "a start after the end, beyond 2^53", body: { from: 2 ** 53 }, verdict: "to" },
  { name: "an end beyond 2^53", body: { to: 2 ** 60 }, verdict: "to" },
  { name: "an end that is more than any int64", body: { to: 2 ** 63 }, verdict: "to" },
  // The spec is silent about the order of mistakes. Both use the order of its table; the archive named filters first.
  { name: "a wrong query beside wrong filters", body: { query: 1, filters: 1 }, verdict: "query, filters" },
  // The spec is silent about zone indexes.
  { name: "a network with a zone index", body: cidr("fe80::1%eth0", "fe80::%1/10"), verdict: "accepted" },
  { name: "a network with an odd zone index", body: cidr("fe80::1%eth0.5"), verdict: "filters[0].value" },
  { name: "a network with a leading zero", body: cidr("10.0.0.0/08"), verdict: "accepted" },
  { name: "a network with two prefixes", body: cidr("10.0.0.0/8/8"), verdict: "filters[0].value" },
  { name: "a network with an empty prefix", body: cidr("10.0.0.0/"), verdict: "filters[0].value" },
  // The schema calls the members of a filter nullable, but the spec gives null no meaning there.
  {
    name: "a filter of nulls",
    body: { filters: [{ field: null, op: null, value: null }] },
    verdict: "filters[0].field, filters[0].op, filters[0].value",
  },
  // The spec is silent about size limits.
  { name: "50 filters", body: { filters: repeat(50, filter) }, verdict: "accepted" },
  { name: "51 filters", body: { filters: repeat(51, filter) }, verdict: "filters" },
  {
    name: "1,000 values",
    body: { filters: [{ ...filter, value: repeat(1_000, "a") }] },
    verdict: "accepted",
  },
  {
    name: "1,001 values",
    body: { filters: [{ ...filter, value: repeat(1_001, "a") }] },
    verdict: "filters[0].value",
  },
  { name: "a query of 10,000 characters", body: { query: "a".repeat(10_000) }, verdict: "accepted" },
  { name: "a query of 10,001 characters", body: { query: "a".repeat(10_001) }, verdict: "query" },
  {
    name: "a value of 10,001 characters",
    body: { filters: [{ ...filter, value: ["a".repeat(10_001)] }] },
    verdict: "filters[0].value",
  },
])("the emulator and the archive agree on $name", ({ body, verdict }) => {
  for (const kind of KINDS) {
    const whole = { ...WINDOW, ...body };
    expect(verdictOf(emulatorReading(whole, kind))).toBe(verdict);
    expect(verdictOf(archiveReading(whole, kind))).toBe(verdict);
  }
});

test("a property named __proto__ is refused like any other unknown property", () => {
  const body: unknown = JSON.parse(`{"from":${WINDOW.from},"to":${WINDOW.to},"__proto__":{"from":1}}`);
  for (const kind of KINDS) {
    expect(emulatorReading(body, kind)).toEqual({ refused: ["__proto__"] });
    expect(archiveReading(body, kind)).toEqual({ refused: ["__proto__"] });
  }
});

const requests = fc.constantFrom(...KINDS).chain((kind) =>
  fc.record({
    kind: fc.constant(kind),
    zone: fc.constantFrom("101", "101", "101", "101", "9", "9", "-1", "x", "2147483648"),
    text: requestTexts[kind],
  }),
);

/** Requests whose end lies before the platform's 72 hours are compared by the functions above. */
function hasOldEnd(text: string): boolean {
  const body: unknown = JSON.parse(text);
  const to: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "to") : undefined;
  return typeof to === "number" && to < NOW - 72 * HOUR_MS;
}

test("the emulator and the archive answer random requests alike over HTTP, byte for byte", {
  timeout: 120_000,
}, async () => {
  const { ask, platform } = await openArchive({ historyHours: 3 });
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(requests, async ({ kind, zone, text }) => {
      fc.pre(!hasOldEnd(text));
      const path = `/shield/event-logs/${zone}/${kind}`;
      const [ours, theirs] = await Promise.all([ask(path, post(text)), platform(path, post(text))]);
      seen.set(ours.status, (seen.get(ours.status) ?? 0) + 1);
      const name = kind === "export" || text.includes("groupBy") ? `${kind} grouped` : kind;
      expect(difference(text, comparable(readBack(ours), name), comparable(theirs, name))).toEqual([]);
    }),
    { numRuns: draws(50, 120) },
  );
  // The comparison is useful only if requests are accepted, refused, and about unknown zones.
  for (const status of [200, 202, 400]) expect(seen.get(status)).toBeGreaterThan(2);
});

test("the emulator and the archive draw the same sparkline over a window that starts before 1970", async () => {
  const { ask, platform } = await openArchive({ historyHours: 2 });
  for (const from of [0, -1, -HOUR_MS, -(2 ** 52), -(2 ** 53), -(2 ** 63)]) {
    const body = post({ from, to: NOW, groupBy: ["action"], buckets: 500, pageSize: 500 });
    const [ours, theirs] = [
      await ask("/shield/event-logs/101/search", body),
      await platform("/shield/event-logs/101/search", body),
    ];
    expect(ours.status).toBe(200);
    expect((JSON.parse(ours.text) as { groups: unknown[] }).groups.length).toBeGreaterThan(1);
    expect(JSON.parse(ours.text)).toEqual(JSON.parse(theirs.text));
  }
});
