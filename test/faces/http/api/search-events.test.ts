import { beforeAll, expect, test } from "vitest";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { HOUR_MS } from "#lib/units.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey } from "#model/waf-event.ts";
import { storeEvents } from "#test/db/new-events.ts";
import { makeEvent } from "#test/detection/trend-support.ts";
import { findOcsfMistakes } from "#test/support/validate-ocsf.ts";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const HOUR = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS;
const WINDOW = { from: HOUR, to: HOUR + HOUR_MS };
const events = ["/login?user=1", "/login?user=2", "/shop"].map((path, index) =>
  makeEvent({
    logId: `e${index}`,
    occurredAt: HOUR + index * 60_000,
    url: `https://shop.example.com${path}`,
    ip: "203.0.113.7",
    asn: "64500",
    country: "DE",
    ua: "probe/1",
  }),
);

beforeAll(async () => {
  const database = world.database();
  await ensurePartitions(database, [new Date(HOUR).toISOString().slice(0, 10)]);
  await storeEvents(database, 101, events, { expectNew: true });
  const entries = events.slice(1).map((event) => {
    const log = JSON.stringify({ Url: event.url });
    const raw = JSON.stringify({ ...event, timestamp: event.occurredAt, log, labels: { method: "POST" } });
    return { occurredAt: event.occurredAt, logIdHash: hashEventKey(event), raw: Buffer.from(raw) };
  });
  await insertRawBlocks(database.db, 101, await packRawBlocks(entries));
});

const SEARCH = "/api/v1/zones/101/events/search";
const post = (body: object) => ({ method: "POST", body: JSON.stringify({ ...WINDOW, ...body }) });

interface Answer {
  readonly rows: readonly { logId: string; log: object | null; fields: Record<string, string> }[];
  readonly groups: readonly { key: Record<string, string>; count: number }[];
  readonly total: number;
}

test("a row has every field by its one name, with host and path of the URL and the method of the record", async () => {
  const { url } = await world.start();
  const { rows, groups } = await ask<Answer>(url, SEARCH, await world.key("reader"), post({}));
  expect(groups).toEqual([]);
  expect(rows.map(({ logId, fields }) => [logId, fields["method"]])).toEqual([
    ["e2", "POST"],
    ["e1", "POST"],
    ["e0", ""],
  ]);
  expect(rows[1]?.log).toEqual({ Url: events[1]?.url });
  expect(rows[1]?.fields).toEqual({
    rule: "942100",
    action: "block",
    address: "203.0.113.7",
    country: "DE",
    network: "64500",
    host: "shop.example.com",
    path: "/login",
    method: "POST",
    url: "https://shop.example.com/login?user=2",
    agent: "probe/1",
    ja4: "",
    feature: "",
    zone: "101",
  });
});

test("a masked key sees the fields, but neither the whole address nor the record", async () => {
  const { url } = await world.start();
  const masked = await world.key("reader", { isMasked: true });
  const { rows } = await ask<Answer>(url, SEARCH, masked, post({}));
  expect(rows[1]).toMatchObject({ log: null, fields: { address: "203.0.113.*", path: "/login" } });
  await ask(url, SEARCH, masked, { ...post({ groupBy: ["address"] }), status: 400 });
});

test("groups and filters take the names and the platform's names, and a filter can exclude", async () => {
  const { url } = await world.start();
  const key = await world.key("reader");
  const paths = await ask<Answer>(url, SEARCH, key, post({ groupBy: ["path", "ruleId"] }));
  expect(paths.groups).toMatchObject([
    { key: { path: "/login", ruleId: "942100" }, count: 2 },
    { key: { path: "/shop", ruleId: "942100" }, count: 1 },
  ]);
  const filters = [
    { field: "asn", op: "eq", value: ["AS64500"] },
    { field: "action", op: "eq", value: ["blocked"] },
    { field: "path", op: "contains", value: ["log"], not: true },
  ];
  expect((await ask<Answer>(url, SEARCH, key, post({ filters }))).rows.map(({ logId }) => logId)).toEqual([
    "e2",
  ]);
});

test("every mistake is named with field, value and rule, also a value that no event can have", async () => {
  const { url } = await world.start();
  const filters = [
    { field: "action", op: "eq", value: ["stopped"] },
    { field: "status", op: "eq", value: ["x"] },
  ];
  const { mistakes } = await ask<{ mistakes: { field: string; value: string; rule: string }[] }>(
    url,
    SEARCH,
    await world.key("reader"),
    { ...post({ filters }), status: 400 },
  );
  expect(mistakes.map(({ field, value }) => [field, value])).toEqual([
    ["filters[0].value", '"stopped"'],
    ["filters[1].field", '"status"'],
  ]);
  expect(mistakes[0]?.rule).toMatch(/^for action must be block \(or blocked\), .*[^.]$/);
  expect(mistakes[1]?.rule).toMatch(
    /^must be one of rule, action, address, country, network, host, path, method/,
  );
});

test("the platform's own search refuses what the platform does not know, also from a console's session", async () => {
  const { url } = await world.start();
  const key = await world.key("reader");
  const signIn = await call(url, "/session", undefined, {
    method: "POST",
    body: JSON.stringify({ key }),
    headers: { origin: url },
  });
  const cookie = (signIn.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
  const { pageToken } = (await signIn.json()) as { pageToken: string };
  const bodies = [
    { groupBy: ["path"] },
    { groupBy: ["rule"] },
    { filters: [{ field: "ip", op: "eq", value: ["x"], not: true }] },
  ];
  for (const body of bodies)
    for (const headers of [{ AccessKey: key }, { cookie, origin: url, "x-page-token": pageToken }]) {
      const { status } = await call(url, "/shield/event-logs/101/search", undefined, {
        ...post(body),
        headers,
      });
      expect({ body, status }).toEqual({ body, status: 400 });
    }
});

test("an export takes the same filters, and the audit trail names the filtered fields", async () => {
  const { url } = await world.start();
  const key = await world.key("admin");
  const filters = [
    { field: "method", op: "eq", value: ["post"] },
    { field: "path", op: "eq", value: ["/login"] },
  ];
  const exported = await call(url, "/api/v1/zones/101/events/export", key, post({ filters }));
  expect(exported.status).toBe(200);
  expect((await exported.text()).split("\r\n").map((line) => line.split(",")[1])).toEqual([
    "logId",
    "e1",
    undefined,
  ]);
  const { items } = await ask<{ items: { action: string; details: object }[] }>(url, "/api/v1/audit", key);
  expect(items.find(({ action }) => action === "events.exported")?.details).toMatchObject({
    filteredBy: ["path", "method"],
  });
});

test("a zone that is not kept is a 404, and a zone that the key may not see a 403", async () => {
  const { url } = await world.start();
  const other = "/api/v1/zones/999/events/search";
  await ask(url, other, await world.key("reader"), { ...post({}), status: 404 });
  await ask(url, other, await world.key("reader", { zoneIds: [101] }), { ...post({}), status: 403 });
});

test("format ocsf returns valid HTTP Activities with their records, which a masked key does not see", async () => {
  const { url } = await world.start();
  const rowsFor = async (key: string, format: string) =>
    (await ask<{ rows: Record<string, unknown>[] }>(url, SEARCH, key, post({ format }))).rows;
  const rows = await rowsFor(await world.key("reader"), "ocsf");
  expect(rows.flatMap((row) => findOcsfMistakes("http_activity", row))).toEqual([]);
  expect(rows.map((row) => [row["activity_id"], typeof row["raw_data"]])).toEqual([
    [6, "string"],
    [6, "string"],
    [0, "undefined"],
  ]);
  const masked = await rowsFor(await world.key("reader", { isMasked: true }), "ocsf");
  expect(masked[0]).toMatchObject({ activity_id: 0, src_endpoint: { name: "203.0.113.*" } });
  expect(masked[0]).not.toHaveProperty("raw_data");
  const raw = await rowsFor(await world.key("reader"), "raw");
  expect(raw[0]).toMatchObject({ logId: "e2", labels: { method: "POST" } });
  await ask(url, SEARCH, await world.key("reader"), { ...post({ format: "csv" }), status: 400 });
});

test("an export with the format ocsf has one valid object per line, and a masked key gets no whole address", async () => {
  const { url } = await world.start();
  const linesFor = async (isMasked: boolean) => {
    const headers = {
      AccessKey: await world.key("exporter", { isMasked }),
      "content-type": "application/json",
    };
    const response = await fetch(url + SEARCH.replace("search", "export"), {
      ...post({ format: "ocsf" }),
      headers,
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "application/x-ndjson; charset=utf-8",
    ]);
    const lines = (await response.text()).split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  const whole = await linesFor(false);
  expect(whole.flatMap((line) => findOcsfMistakes("http_activity", line))).toEqual([]);
  expect(whole.map((line) => line["src_endpoint"])).toEqual(
    events.map(() => expect.objectContaining({ ip: "203.0.113.7" })),
  );
  const masked = await linesFor(true);
  expect(masked.map((line) => line["src_endpoint"])).toEqual(
    events.map(() => expect.objectContaining({ name: "203.0.113.*" })),
  );
  const refused = await ask<{ mistakes: object[] }>(
    url,
    SEARCH.replace("search", "export"),
    await world.key("exporter"),
    {
      ...post({ format: "xml" }),
      status: 400,
    },
  );
  expect(JSON.stringify(refused)).toContain("format");
});

test("zone all is every zone that the key may see, and a list is refused if one of its zones is of others", async () => {
  const database = world.database();
  await storeEvents(database, 102, events.slice(0, 2), { expectNew: true });
  const { url } = await world.start();
  const everywhere = await world.key("reader");
  const own = await world.key("reader", { zoneIds: [101] });
  const path = (zone: string) => `/api/v1/zones/${zone}/events/search`;
  const totalOf = async (zone: string, key: string) =>
    (await ask<Answer>(url, path(zone), key, post({}))).total;
  expect([await totalOf("all", everywhere), await totalOf("101,102", everywhere)]).toEqual([5, 5]);
  expect(await totalOf("all", own)).toBe(3);
  await ask(url, path("101,102"), own, { ...post({}), status: 403 });
  await ask(url, path("101,999"), everywhere, { ...post({}), status: 404 });
  await ask(url, path("101,x"), everywhere, { ...post({}), status: 400 });
  const withoutEvents = { zoneId: 103, startsAt: new Date(HOUR) };
  await database.db.insert(coverageWindows).values(withoutEvents);
  expect(await totalOf("all", everywhere)).toBe(5);
  await ask(url, "/api/v1/compare?zone=all", everywhere);
  await ask(url, "/api/v1/compare?zone=101&against=103", everywhere);
  const exported = async (zone: string, key: string, status = 200) => {
    const body = JSON.stringify({ ...(JSON.parse(post({}).body) as object), format: "csv" });
    const headers = { AccessKey: key, "content-type": "application/json" };
    const response = await fetch(`${url}/api/v1/zones/${zone}/events/export`, {
      method: "POST",
      headers,
      body,
    });
    expect(response.status).toBe(status);
    const lines = (await response.text()).split("\r\n").slice(1, -1);
    return lines.map((line) => line.split(",").at(-1));
  };
  const exporter = await world.key("exporter");
  expect(await exported("all", exporter)).toEqual(["101", "101", "101", "102", "102"]);
  const ofOne = await world.key("exporter", { zoneIds: [102] });
  expect(await exported("all", ofOne)).toEqual(["102", "102"]);
  await exported("101,102", ofOne, 403);
  const trend = async (zone: string, key: string, status = 200) =>
    ask<{ zone: number | null; points: { zone: number; total: number }[] }>(
      url,
      `/api/v1/trends?zone=${zone}&width=day`,
      key,
      { status },
    );
  const { zone, points } = await trend("101,102", everywhere);
  expect([zone, [...new Set(points.map((point) => point.zone))]]).toEqual([null, [101, 102]]);
  expect((await trend("101", everywhere)).zone).toBe(101);
  expect(new Set((await trend("all", own)).points.map((point) => point.zone))).toEqual(new Set([101]));
  await trend("101,102", own, 403);
  for (const list of [
    "alerts",
    "rules",
    "coverage",
    "overview",
    "gaps",
    "coverage/days",
    "spikes",
    "quarantine",
  ]) {
    await ask(url, `/api/v1/${list}?zone=101,102`, everywhere);
    await ask(url, `/api/v1/${list}?zone=all`, own);
    await ask(url, `/api/v1/${list}?zone=101,102`, own, { status: 403 });
  }
  const hours = await ask<{ items: { zoneId: number }[] }>(
    url,
    `/api/v1/coverage?zone=102,103&from=${HOUR}&to=${HOUR + 3_600_000}`,
    everywhere,
  );
  expect([...new Set(hours.items.map(({ zoneId }) => zoneId))]).toEqual([102, 103]);
  const { groups } = await ask<Answer>(url, path("all"), everywhere, post({ groupBy: ["zone"] }));
  expect(groups.map(({ key, count }) => [key["zone"], count])).toEqual([
    ["101", 3],
    ["102", 2],
  ]);
});

interface Compared {
  readonly items: readonly { key: Record<string, string>; count: number; before: number; change: number }[];
  readonly total: { count: number; before: number; change: number; groups: number };
}

test("a comparison says what has changed against the period before, the week before or another zone, most first", async () => {
  const database = world.database();
  const earlier = [1, 2, 3].map((index) =>
    makeEvent({
      logId: `w${index}`,
      occurredAt: HOUR - index * 60_000,
      url: "https://shop.example.com/login",
    }),
  );
  await ensurePartitions(database, [new Date(HOUR - HOUR_MS).toISOString().slice(0, 10)]);
  await storeEvents(database, 101, earlier, { expectNew: true });
  const { url } = await world.start();
  const key = await world.key("reader");
  const compare = (query: string, as = key) =>
    ask<Compared>(url, `/api/v1/compare?from=${HOUR}&to=${HOUR + HOUR_MS}&${query}`, as);
  const paths = await compare("zone=101&groupBy=path");
  expect(paths.items).toEqual([
    { key: { path: "/login" }, count: 2, before: 3, change: -1 },
    { key: { path: "/shop" }, count: 1, before: 0, change: 1 },
  ]);
  expect(paths.total).toEqual({ count: 3, before: 3, change: 0, groups: 2 });
  expect((await compare("zone=101&against=102&groupBy=path&filter=path:eq:/shop")).items).toEqual([
    { key: { path: "/shop" }, count: 1, before: 0, change: 1 },
  ]);
  expect((await compare("zone=101&against=week")).total).toMatchObject({ count: 3, before: 0 });
  const own = await world.key("reader", { zoneIds: [101] });
  expect((await compare("zone=all", own)).items.map(({ key: of }) => of)).toEqual([{ zone: "101" }]);
  for (const [query, as, status] of [
    ["zone=101&against=102", own, 422],
    ["zone=101&against=101", key, 422],
    ["zone=101&against=never", key, 400],
    ["zone=101&groupBy=nothing", key, 400],
    ["zone=101&filter=path", key, 422],
  ] as const)
    await ask(url, `/api/v1/compare?from=${HOUR}&to=${HOUR + HOUR_MS}&${query}`, as, { status });
});
