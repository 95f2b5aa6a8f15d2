import fc from "fast-check";
import { expect, test } from "vitest";
import type { Emulator } from "#emulator/emulator.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { draws } from "../support/sample.ts";
import { bodyOf, call, NOW, type OracleEvent, oracle, search, send, shareEmulator } from "./support.ts";

const SEARCH = "/shield/event-logs/101/search";
const DIMENSIONS = ["feature", "ruleId", "ip", "ja4", "ua", "url", "asn", "country", "action"] as const;
const emulator = await shareEmulator({ eventsPerSecond: 0.6, historyHours: 2 });
const window = { from: NOW - HOUR_MS, to: NOW };

async function refusal(emulator: Emulator, body: unknown, path = SEARCH): Promise<Record<string, string[]>> {
  const response = await send(emulator, "POST", path, body);
  expect(response.status).toBe(400);
  expect(response.headers.get("content-type")).toContain("application/problem+json");
  return (await bodyOf<{ errors: Record<string, string[]> }>(response)).errors;
}

test("flat rows are newest first, resolve every dimension with the whole address, and page without gaps", async () => {
  const events = (await oracle(emulator)).filter((event) => event.timestamp >= window.from).toReversed();
  const pages = await Promise.all(
    [0, 1, 2, 3].map((page) => search(emulator, { ...window, page, pageSize: Math.ceil(events.length / 4) })),
  );
  const rows = pages.flatMap((page) => page.rows ?? []);
  expect(rows).toEqual(
    events.map(({ logId, timestamp, log, ...fields }) => ({ logId, timestamp, log, fields })),
  );
  expect(
    pages.every((page) => page.groups === null && page.total === events.length && page.totalPages === 4),
  ).toBe(true);
  expect(pages.map((page) => page.page)).toEqual([0, 1, 2, 3]);
  expect((await search(emulator, { ...window, page: 99 })).rows).toEqual([]);
});

test("the window is half-open: an event at `to` is out, one at `from` is in", async () => {
  const [first, second] = (await oracle(emulator)).slice(-40, -38);
  const between = { from: first?.timestamp ?? 0, to: second?.timestamp ?? 0 };
  expect((await search(emulator, between)).rows?.map((row) => row.logId)).toEqual([first?.logId]);
});

test.each([
  { given: undefined, shown: 50 },
  { given: 0, shown: 1 },
  { given: -3, shown: 1 },
  { given: 5, shown: 5 },
  { given: 501, shown: 500 },
  { given: 2_147_483_647, shown: 500 },
])("pageSize $given is read as $shown", async ({ given, shown }) => {
  const body = await search(emulator, given === undefined ? {} : { pageSize: given });
  expect(body.rows).toHaveLength(shown);
  expect(body.totalPages).toBe(Math.ceil(body.total / shown));
});

test("buckets are clamped to 500, 0 and negative ones leave the sparkline out", async () => {
  const group = async (buckets: number) =>
    (await search(emulator, { groupBy: ["action"], buckets })).groups?.[0];
  expect((await group(501))?.sparkline).toHaveLength(500);
  expect((await group(4))?.sparkline).toHaveLength(4);
  expect(await group(0)).not.toHaveProperty("sparkline");
  expect(await group(-1)).not.toHaveProperty("sparkline");
});

test("an empty groupBy gives flat rows, a dimension named twice counts once", async () => {
  expect((await search(emulator, { groupBy: [] })).rows).toHaveLength(50);
  expect((await search(emulator, { groupBy: null, filters: null, query: null })).rows).toHaveLength(50);
  const twice = await search(emulator, { groupBy: ["action", "action"] });
  expect(twice.groups?.map((group) => Object.keys(group.key))).toEqual(twice.groups?.map(() => ["action"]));
});

test("groups agree with a count over the oracle: order, times, context and half-open buckets", async () => {
  const events = (await oracle(emulator)).filter((event) => event.timestamp >= window.from);
  const buckets = 7;
  const { groups, total } = await search(emulator, {
    ...window,
    groupBy: ["country", "action"],
    buckets,
    pageSize: 500,
  });
  const keys = new Set(events.map((event) => `${event.country}/${event.action}`));
  expect(total).toBe(keys.size);
  const widthMs = HOUR_MS / buckets;
  for (const group of groups ?? []) {
    const members = events.filter(
      (event) => event.country === group.key["country"] && event.action === group.key["action"],
    );
    expect(group.count).toBe(members.length);
    expect([group.firstSeen, group.lastSeen]).toEqual([members[0]?.timestamp, members.at(-1)?.timestamp]);
    const expected = Array.from({ length: buckets }, (_, i) => {
      const [startMs, endMs] = [window.from + i * widthMs, window.from + (i + 1) * widthMs];
      return members.filter((event) => event.timestamp >= startMs && event.timestamp < endMs).length;
    });
    expect(group.sparkline).toEqual(expected);
    expect(group.context).toMatchObject({
      country: group.key["country"],
      blocked: group.key["action"] === "block" ? members.length : 0,
      logged: group.key["action"] === "log" ? members.length : 0,
      challenged: group.key["action"] === "challenge" ? members.length : 0,
      features: [...new Set(members.map((event) => event.feature))].sort().join(","),
      ruleIds: [...new Set(members.map((event) => event.ruleId))].sort().join(","),
    });
    expect(members.map((event) => event.asn)).toContain(group.context["asn"]);
  }
  const order = groups?.map((group) => [-group.count, group.key["country"], group.key["action"]]);
  expect(order).toEqual(
    order?.toSorted(
      (a, b) => Number(a[0]) - Number(b[0]) || (String(a.slice(1)) < String(b.slice(1)) ? -1 : 1),
    ),
  );
});

test("for any dimensions, buckets and filter the groups add up to the flat rows", async () => {
  const events = await oracle(emulator);
  const filter = fc.constantFrom(...DIMENSIONS).chain((field) =>
    fc.record({
      field: fc.constant(field),
      op: fc.constantFrom("eq", "in"),
      value: fc.array(fc.constantFrom(...events.map((event) => event[field])), {
        minLength: 1,
        maxLength: 4,
      }),
    }),
  );
  const request = fc.record({
    groupBy: fc.uniqueArray(fc.constantFrom(...DIMENSIONS), { minLength: 1, maxLength: 3 }),
    buckets: fc.integer({ min: 0, max: 40 }),
    filters: fc.array(filter, { maxLength: 2 }),
    from: fc.integer({ min: NOW - 4 * HOUR_MS, max: NOW - 1 }),
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ groupBy, buckets, filters, from }) => {
      const wanted = { from, to: NOW, filters, pageSize: 500 };
      const flat = await search(emulator, wanted);
      const first = await search(emulator, { ...wanted, groupBy, buckets });
      const rest = await Promise.all(
        Array.from({ length: Math.max(0, first.totalPages - 1) }, (_, i) =>
          search(emulator, { ...wanted, groupBy, buckets, page: i + 1 }),
        ),
      );
      const groups = [first, ...rest].flatMap((body) => body.groups ?? []);
      const expected = events.filter(
        (e) => e.timestamp >= from && filters.every(({ field, value }) => value.includes(e[field])),
      );
      expect(flat.total).toBe(expected.length);
      expect(groups.reduce((sum, group) => sum + group.count, 0)).toBe(flat.total);
      expect(first.total).toBe(
        new Set(expected.map((e) => JSON.stringify(groupBy.map((name) => e[name])))).size,
      );
      expect(groups).toHaveLength(first.total);
      for (const group of groups) {
        const inBuckets = group.sparkline?.reduce((sum, count) => sum + count, 0);
        expect(inBuckets).toBe(buckets > 0 ? group.count : undefined);
      }
    }),
    { numRuns: draws(8, 40) },
  );
});

type Case = { name: string; filters: unknown[]; matches: (event: OracleEvent) => boolean };
const ip4InBlock = (ip: string, first: number) =>
  Number(ip.split(".")[0]) >> 3 === first >> 3 && !ip.includes(":");
const cases: Case[] = [
  {
    name: "eq is exact and minds case",
    filters: [{ field: "action", op: "eq", value: ["Block"] }],
    matches: () => false,
  },
  {
    name: "eq with several values is any of them",
    filters: [{ field: "action", op: "eq", value: ["block", "log"] }],
    matches: (e) => e.action !== "challenge",
  },
  {
    name: "in is any of its values",
    filters: [{ field: "ruleId", op: "in", value: ["942100", "930130"] }],
    matches: (e) => ["942100", "930130"].includes(e.ruleId),
  },
  {
    name: "contains ignores case",
    filters: [{ field: "ua", op: "contains", value: ["CHROME/13", "nikto"] }],
    matches: (e) => /chrome\/13|nikto/i.test(e.ua),
  },
  {
    name: "wildcard covers the whole text and ignores case",
    filters: [{ field: "url", op: "wildcard", value: ["HTTPS://shop.*/login*"] }],
    matches: (e) => /^https:\/\/shop\..*\/login.*$/is.test(e.url),
  },
  {
    name: "wildcard without a star is the whole text",
    filters: [{ field: "country", op: "wildcard", value: ["d", "us"] }],
    matches: (e) => e.country === "US",
  },
  {
    name: "wildcard takes its other characters literally",
    filters: [{ field: "url", op: "wildcard", value: ["*?q=*"] }],
    matches: (e) => e.url.includes("?q="),
  },
  {
    name: "cidr matches IPv4 networks",
    filters: [{ field: "ip", op: "cidr", value: ["184.0.0.0/5"] }],
    matches: (e) => ip4InBlock(e.ip, 184),
  },
  {
    name: "cidr matches IPv6 networks, also next to IPv4 ones",
    filters: [{ field: "ip", op: "cidr", value: ["2a00::/12", "5.0.0.0/8", "::1"] }],
    matches: (e) => e.ip.startsWith("2a0") || e.ip.startsWith("5."),
  },
  {
    name: "filters are combined with AND",
    filters: [
      { field: "action", op: "eq", value: ["block"] },
      { field: "feature", op: "eq", value: ["rateLimit", "botDetection"] },
    ],
    matches: (e) => e.action === "block" && e.feature !== "waf",
  },
];
test.each(cases)("$name", async ({ name, filters, matches }) => {
  const events = await oracle(emulator);
  const expected = events.filter(matches);
  expect(expected.length > 0).toBe(!name.startsWith("eq is exact"));
  expect((await search(emulator, { filters, pageSize: 1 })).total).toBe(expected.length);
});

test("free text looks at address, rule, URL, user agent and rule name, and at nothing else", async () => {
  const events = await oracle(emulator);
  const total = async (query: string) => (await search(emulator, { query, pageSize: 1 })).total;
  const [sample] = events;
  expect(await total(sample?.ip ?? "")).toBe(
    events.filter((e) => JSON.stringify([e.ip, e.url, e.ua]).includes(sample?.ip ?? "")).length,
  );
  expect(await total("LIBINJECTION")).toBe(
    events.filter((e) => /libinjection/i.test(String(e.log["Message"]))).length,
  );
  expect(await total("944150")).toBe(events.filter((e) => e.ruleId === "944150").length);
  expect(await total("/wp-login")).toBe(events.filter((e) => e.url.includes("/wp-login")).length);
  expect(await total("nikto")).toBe(events.filter((e) => /nikto/i.test(e.ua + e.url)).length);
  expect(await total(sample?.ja4 ?? "")).toBe(0);
  expect(await total("")).toBe(events.length);
});

test("every broken rule of a body is reported, with field, value and rule", async () => {
  const errors = await refusal(emulator, {
    from: NOW,
    to: NOW - 1,
    page: 1.5,
    pageSize: "many",
    groupBy: ["ruleId", "rule"],
    extra: true,
    filters: [
      { field: "asn", op: "cidr", value: ["10.0.0.0/8"] },
      { field: "ip", op: "cidr", value: ["10.0.0.0/33"] },
      { field: "host", op: "like", value: [] },
      { field: "ip", op: "eq", value: ["1"], not: true },
      null,
    ],
  });
  expect(Object.keys(errors).sort()).toEqual(
    [
      "extra",
      "filters[0].op",
      "filters[1].value",
      "filters[2].field",
      "filters[2].op",
      "filters[2].value",
      "filters[3].not",
      "filters[4]",
      "groupBy[1]",
      "page",
      "pageSize",
      "to",
    ].sort(),
  );
  expect(errors["filters[2].op"]?.[0]).toContain('"like"');
  expect(errors["filters[2].op"]?.[0]).toContain("eq, in, contains, cidr, wildcard");
  expect(errors["groupBy[1]"]?.[0]).toContain('"rule"');
});

test("a validation problem says in its detail which field breaks which rule, and how many more there are", async () => {
  const detailOf = async (body: unknown) =>
    (await bodyOf<{ detail: string }>(send(emulator, "POST", SEARCH, body))).detail;
  expect(await detailOf({ ...window, page: 1.5 })).toBe(
    "The value 1.5 is not valid: page must be a 32-bit integer.",
  );
  expect(await detailOf({ from: "a", to: NOW, groupBy: ["rule"], buckets: "b" })).toBe(
    'The value "a" is not valid: from is required and must be Unix time in milliseconds. (and 2 more)',
  );
});

test.each([
  { name: "no times", body: {}, field: "from" },
  {
    name: "an end before the horizon",
    body: { from: NOW - 80 * HOUR_MS, to: NOW - 72 * HOUR_MS - 1 },
    field: "to",
  },
  { name: "an end in the future", body: { from: NOW, to: NOW + 6 * MINUTE_MS }, field: "to" },
  { name: "equal times", body: { from: NOW, to: NOW }, field: "to" },
  { name: "times as text", body: { from: "yesterday", to: NOW }, field: "from" },
  { name: "an array", body: [], field: "$" },
])("a search or export with $name is refused", async ({ body, field }) => {
  expect(Object.keys(await refusal(emulator, body))).toContain(field);
  expect(Object.keys(await refusal(emulator, body, "/shield/event-logs/101/export"))).toContain(field);
});

test("the start of a window may lie before the horizon, its end a little in the future", async () => {
  const all = await oracle(emulator);
  expect((await search(emulator, { from: 0, to: NOW + 4 * MINUTE_MS })).total).toBe(all.length);
});

test("three media types are read, others are not, and a body has a size limit", async () => {
  const post = (contentType: string, body = JSON.stringify(window)) =>
    call(emulator, SEARCH, { method: "POST", body, headers: { "content-type": contentType } });
  for (const type of [
    "application/json",
    "text/json; charset=utf-8",
    "application/vnd.x+json",
    "application/*+json",
  ])
    expect((await post(type)).status).toBe(200);
  for (const type of ["text/plain", "application/xml", ""]) expect((await post(type)).status).toBe(415);
  expect((await post("application/json", "{")).status).toBe(400);
  expect((await post("application/json", `"${"x".repeat(2_000_000)}"`)).status).toBe(413);
});

test("an unknown zone is a filled 202, a wrong key a bare 401", async () => {
  const unknown = await send(emulator, "POST", "/shield/event-logs/9/search", window);
  expect(unknown.status).toBe(202);
  expect(await unknown.json()).toMatchObject({
    rows: null,
    groups: null,
    total: 0,
    errorResponse: { errorKey: "not_found_or_unauthorised_access.shieldzone" },
  });
  const refused = await call(emulator, SEARCH, {
    method: "POST",
    body: "{}",
    headers: { AccessKey: "wrong" },
  });
  expect(refused.status).toBe(401);
  expect(await refused.json()).not.toHaveProperty("errorKey");
});

/** A second reader of RFC 4180, so that the export is not checked with its own writer. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  const cells = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n)/gy;
  let row: string[] = [];
  for (const [, quoted, plain = "", end] of text.matchAll(cells)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "\r\n") {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}

test("the export holds the whole filtered set, newest first, in the columns that its header names", async () => {
  const filters = [{ field: "action", op: "eq", value: ["block"] }];
  const response = await send(emulator, "POST", "/shield/event-logs/101/export", { ...window, filters });
  expect(response.headers.get("content-type")).toContain("text/csv");
  const [header, ...rows] = parseCsv(await response.text());
  expect(header).toEqual(["timestamp", "logId", ...DIMENSIONS]);
  const expected = (await oracle(emulator))
    .filter((e) => e.timestamp >= window.from && e.action === "block")
    .toReversed();
  const wellFormed = (text: string) => text.replaceAll(/\p{Surrogate}/gu, "\ufffd");
  expect(rows).toEqual(
    expected.map((e) => [String(e.timestamp), e.logId, ...DIMENSIONS.map((name) => wellFormed(e[name]))]),
  );
  expect(
    await refusal(emulator, { ...window, groupBy: ["ip"], page: 0 }, "/shield/event-logs/101/export"),
  ).toMatchObject({ groupBy: expect.anything(), page: expect.anything() });
});
