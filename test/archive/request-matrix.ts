import { gzipSync } from "node:zlib";
import { HOUR_MS } from "#lib/units.ts";
import { DIMENSIONS } from "#model/kinds.ts";
import { NOW, post } from "./support.ts";

/** One request of the matrix: what it is about, and how it is sent. */
export interface MatrixRequest {
  readonly name: string;
  readonly path: string;
  readonly init?: RequestInit & { key?: string | null };
}

const DAY = { from: NOW - 24 * HOUR_MS, to: NOW + 1 };
const WINDOW = { from: NOW - 2 * HOUR_MS, to: NOW + 1 };
const SEARCH = "/shield/event-logs/101/search";
const EXPORT = "/shield/event-logs/101/export";

/** Bodies that both operations take, with what they are about. */
const QUERIES: Readonly<Record<string, object>> = {
  "a window": {},
  "nulls for what may be null": { query: null, filters: null },
  "an empty window": { from: NOW - 1, to: NOW },
  "a window that begins before everything": { from: 0 },
  "a window that begins before 1970": { from: -1 },
  "a window that ends a minute ahead": { to: NOW + 60_000 },
  "free text": { query: "sql" },
  "free text in capitals": { query: "MOZILLA" },
  "free text with LIKE's own characters": { query: "%_\\" },
  "free text of an address": { query: "203.0.113." },
  "free text that hurts": { query: "'; DROP TABLE waf_events; --\u0000\ud800" },
  "eq of one": { filters: [{ field: "action", op: "eq", value: ["block"] }] },
  "eq in another case": { filters: [{ field: "action", op: "eq", value: ["BLOCK"] }] },
  "in of several": { filters: [{ field: "country", op: "in", value: ["CN", "DE", "US", "nowhere"] }] },
  "in of an empty text": { filters: [{ field: "ja4", op: "in", value: [""] }] },
  contains: { filters: [{ field: "ua", op: "contains", value: ["chrome", "CURL"] }] },
  "contains nothing": { filters: [{ field: "url", op: "contains", value: [""] }] },
  "contains LIKE's own characters": { filters: [{ field: "url", op: "contains", value: ["%", "_"] }] },
  wildcard: { filters: [{ field: "url", op: "wildcard", value: ["https://*/*?*"] }] },
  "wildcard of one star": { filters: [{ field: "url", op: "wildcard", value: ["*"] }] },
  "wildcard without a star": { filters: [{ field: "ruleId", op: "wildcard", value: ["930130"] }] },
  "cidr of IPv4": { filters: [{ field: "ip", op: "cidr", value: ["203.0.113.0/24", "198.51.100.0/25"] }] },
  "cidr of IPv6": { filters: [{ field: "ip", op: "cidr", value: ["2001:db8::/32"] }] },
  "cidr of one address": { filters: [{ field: "ip", op: "cidr", value: ["203.0.113.7"] }] },
  "everything together": {
    query: "a",
    filters: [
      { field: "action", op: "in", value: ["block", "log"] },
      { field: "url", op: "wildcard", value: ["https*"] },
    ],
  },
};

/** Bodies that both operations refuse. */
const REFUSED: Readonly<Record<string, unknown>> = {
  null: null,
  "a list": [],
  "a text": '"x"',
  "a number": 5,
  "nothing in it": {},
  "no end": { from: NOW },
  "the end before the beginning": { from: NOW, to: NOW - 1 },
  "the end at the beginning": { from: NOW, to: NOW },
  "an end in the future": { from: NOW, to: NOW + 6 * 60_000 },
  "a time as text": { from: "now", to: NOW },
  "a time with a fraction": { from: 1.5, to: NOW },
  "another property": { ...WINDOW, limit: 5, "'; --": 1 },
  "a property that is no property": '{"from":1,"to":2,"__proto__":{"a":1}}',
  "a query that is none": { ...WINDOW, query: 7 },
  "filters that are none": { ...WINDOW, filters: {} },
  "a filter that is none": { ...WINDOW, filters: [null, 3, "x", []] },
  "an unknown field": { ...WINDOW, filters: [{ field: "body", op: "eq", value: ["x"] }] },
  "an unknown operator": { ...WINDOW, filters: [{ field: "ip", op: "regex", value: ["x"] }] },
  "no value": { ...WINDOW, filters: [{ field: "ip", op: "eq", value: [] }] },
  "a value that is no text": { ...WINDOW, filters: [{ field: "ip", op: "eq", value: [1, "x"] }] },
  "another member of a filter": { ...WINDOW, filters: [{ field: "ip", op: "eq", value: ["x"], not: true }] },
  "a cidr of another field": { ...WINDOW, filters: [{ field: "url", op: "cidr", value: ["10.0.0.0/8"] }] },
  "a cidr that is none": { ...WINDOW, filters: [{ field: "ip", op: "cidr", value: ["10.0.0.0/33", "x"] }] },
  "everything wrong at once": {
    from: "a",
    to: -1,
    query: [],
    filters: [{ field: 1, op: 2, value: 3 }],
    more: 1,
  },
};

const SEARCH_ONLY: Readonly<Record<string, object>> = {
  ...Object.fromEntries(
    [0, -5, 1, 7, 500, 501, 99_999].map((pageSize) => [`pageSize ${pageSize}`, { pageSize }]),
  ),
  ...Object.fromEntries([-1, 0, 1, 3, 2_147_483_647].map((page) => [`page ${page}`, { page, pageSize: 20 }])),
  ...Object.fromEntries(DIMENSIONS.map((field) => [`grouped by ${field}`, { groupBy: [field] }])),
  ...Object.fromEntries(
    [-3, 0, 1, 7, 500, 501].map((buckets) => [`${buckets} buckets`, { groupBy: ["ruleId"], buckets }]),
  ),
  "grouped by two": { groupBy: ["country", "action"], pageSize: 5, page: 1 },
  "grouped by two the other way round": { groupBy: ["action", "country"], buckets: 3 },
  "grouped by all": { groupBy: [...DIMENSIONS], pageSize: 20 },
  "grouped by one twice": { groupBy: ["asn", "asn"] },
  "grouped by none": { groupBy: [] },
  "grouped by null": { groupBy: null },
  "grouped, beyond the end": { groupBy: ["ruleId"], page: 99 },
  "grouped and filtered": {
    groupBy: ["ip"],
    query: "sql",
    filters: [{ field: "action", op: "eq", value: ["block"] }],
    buckets: 24,
  },
};

const SEARCH_REFUSED: Readonly<Record<string, object>> = {
  "groupBy that is none": { ...WINDOW, groupBy: "ip" },
  "an unknown dimension": { ...WINDOW, groupBy: ["ip", "body", 3] },
  "a page that is text": { ...WINDOW, page: "1" },
  "a page too large": { ...WINDOW, page: 2_147_483_649 },
  "a pageSize with a fraction": { ...WINDOW, pageSize: 1.5 },
  "buckets that are null": { ...WINDOW, buckets: null },
};

function both(name: string, init: MatrixRequest["init"]): MatrixRequest[] {
  return [
    { name: `search: ${name}`, path: SEARCH, ...(init === undefined ? {} : { init }) },
    { name: `export: ${name}`, path: EXPORT, ...(init === undefined ? {} : { init }) },
  ];
}

const bodies: MatrixRequest[] = [
  ...Object.entries(QUERIES).flatMap(([name, query]) => both(name, post({ ...WINDOW, ...query }))),
  ...Object.entries(REFUSED).flatMap(([name, body]) => both(`refuses ${name}`, post(body))),
  ...Object.entries(SEARCH_ONLY).map(([name, more]) => ({
    name: `search: ${name}`,
    path: SEARCH,
    init: post({ ...DAY, ...more }),
  })),
  ...Object.entries(SEARCH_REFUSED).map(([name, body]) => ({
    name: `search: refuses ${name}`,
    path: SEARCH,
    init: post(body),
  })),
  {
    name: "export: refuses a page",
    path: EXPORT,
    init: post({ ...WINDOW, page: 0, groupBy: [], buckets: 1 }),
  },
];

const mediaTypes: MatrixRequest[] = [
  "application/json",
  "text/json",
  "application/vnd.a+json",
  "application/*+json",
  "application/*+json; charset=utf-8",
  "application/*",
  "APPLICATION/JSON; charset=utf-8",
  "text/plain",
  "application/xml",
  "application/jsonp",
  "multipart/form-data",
  "nonsense",
].flatMap((type) => both(`sent as ${type}`, post({ ...WINDOW, query: "sql" }, { "content-type": type })));

const accepted: MatrixRequest[] = ["text/plain", "application/json", "text/json", "text/csv", "*/*"].flatMap(
  (accept) => both(`accepting ${accept}`, post({ ...WINDOW, query: "sql" }, { accept })),
);

const brokenBodies: MatrixRequest[] = [
  ...["", " ", "{", '{"from":1', "nul", "{'from':1}", "\ufeff{}", '{"a":"\ud800"}'].flatMap((text) =>
    both(`a body that is ${JSON.stringify(text)}`, post(text)),
  ),
  ...both("no body at all", { method: "POST" }),
  ...[32, 33, 5_000].flatMap((depth) =>
    both(`a body that is ${depth} deep`, post("[".repeat(depth) + "]".repeat(depth))),
  ),
  ...both("a deep body of another media type", post("[".repeat(40), { "content-type": "text/plain" })),
  ...both("bytes that are no UTF-8", {
    method: "POST",
    body: Buffer.from(JSON.stringify({ ...WINDOW, query: "\u00ff" }), "latin1"),
    headers: { "content-type": "application/json" },
  }),
  ...both("a compressed body", {
    method: "POST",
    body: gzipSync(JSON.stringify(WINDOW)),
    headers: { "content-type": "application/json", "content-encoding": "gzip" },
  }),
  ...both("a body that says it is not compressed", post(WINDOW, { "content-encoding": "identity" })),
];

const ZONES = ["999", "0", "-1", "-0", "abc", "1e3", "2147483647", "2147483648", "99999999999", "%20101"];
const RULES = [
  "930130",
  "942100",
  "941100",
  "000000",
  "a_b-C",
  "a.b",
  "a b",
  "%00",
  "x".repeat(64),
  "x".repeat(65),
];

const METRICS = "/shield/metrics/shield-zone";

const zones: MatrixRequest[] = ZONES.flatMap((zone) => [
  { name: `search: zone ${zone}`, path: `/shield/event-logs/${zone}/search`, init: post(WINDOW) },
  {
    name: `search: zone ${zone} and a wrong body`,
    path: `/shield/event-logs/${zone}/search`,
    init: post({}),
  },
  { name: `export: zone ${zone}`, path: `/shield/event-logs/${zone}/export`, init: post(WINDOW) },
  { name: `list: zone ${zone}`, path: `/shield/event-logs/${zone}/11-20-2026` },
  { name: `list: zone ${zone} of a day long ago`, path: `/shield/event-logs/${zone}/01-01-1999` },
  { name: `metrics: zone ${zone}`, path: `${METRICS}/${zone}/waf-rule/930130` },
]);

const lists: MatrixRequest[] = [
  "11-20-2026",
  "11-20-2026/",
  "11-20-2026/start",
  "11-19-2026",
  "11-18-2026/",
  "2026-11-20",
  "20-11-2026",
  "1-2-2026",
  "02-30-2026",
  "13-01-2026",
  "today",
  "11-20-2026x",
  "%00",

  "11-20-2026/nonsense",
  "11-20-2026/c1.W10.AAAA",
  "11-20-2026/%2F%2F%3D",
  "11-20-2026/c1..",
  "11-20-2026/%20",
].map((path) => ({ name: `list: ${path}`, path: `/shield/event-logs/101/${path}` }));

const metrics: MatrixRequest[] = RULES.map((rule) => ({
  name: `metrics: rule ${rule}`,
  path: `${METRICS}/101/waf-rule/${rule}`,
}));

const ADVICE = "/shield/waf/rules/review-triggered/ai-recommendation";
const advised: MatrixRequest[] = [
  ...ZONES.filter((zone) => zone !== "999").map((zone) => ({
    name: `advice: zone ${zone}`,
    path: `${ADVICE}/${zone}/930130`,
  })),
  { name: "advice: no rule", path: `${ADVICE}/101/` },
];

const advice = `${ADVICE}/101/930130`;
const DOORS: readonly [name: string, path: string, init?: RequestInit][] = [
  ["search", SEARCH, post(WINDOW)],
  ["search with a wrong body", SEARCH, post("{")],
  ["export", EXPORT, post(WINDOW)],
  ["list", "/shield/event-logs/101/11-20-2026"],
  ["metrics", `${METRICS}/101/waf-rule/930130`],
  ["advice", advice],
];
const keys: MatrixRequest[] = [null, "wrong"].flatMap((key) =>
  DOORS.map(([name, path, init]) => ({ name: `${name}: key ${key}`, path, init: { ...init, key } })),
);

export const REQUESTS: readonly MatrixRequest[] = [
  ...bodies,
  ...mediaTypes,
  ...accepted,
  ...brokenBodies,
  ...zones,
  ...lists,
  ...metrics,
  ...advised,
  ...keys,
];
