import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { requestedRuns } from "#db/schema/service.ts";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";
import type { OpenApi } from "./openapi-document.ts";

const world = openApiWorld();

let known: Promise<OpenApi> | undefined;
/** Reads the document, which is the same from each server. A server writes it at its first request, which costs more than its start. */
function readDocument(url?: string): Promise<OpenApi> {
  known ??= Promise.resolve(url ?? world.start().then((started) => started.url)).then((at) =>
    ask<OpenApi>(at, "/openapi.json"),
  );
  return known;
}

interface Node {
  readonly [name: string]: unknown;
}

/** Every reference in a document. */
function* referencesIn(part: unknown): Generator<string> {
  if (typeof part !== "object" || part === null) return;
  for (const [name, value] of Object.entries(part)) {
    if (name === "$ref") yield String(value);
    else yield* referencesIn(value);
  }
}

function resolve(document: unknown, reference: string): unknown {
  return reference
    .split("/")
    .slice(1)
    .reduce<unknown>((node, name) => (node as Node | undefined)?.[name.replaceAll("\u0000", "/")], document);
}

test("every route is in the document, with access, answers and parameters for what its path names", async () => {
  const registered: string[] = [];
  const { url } = await world.start(
    {},
    {
      routes: [
        (app) =>
          app.addHook("onRoute", ({ method, url: path, schema }) => {
            for (const one of schema?.hide === true ? [] : [method].flat())
              if (one !== "HEAD") registered.push(`${one.toLowerCase()} ${path}`);
          }),
      ],
    },
  );
  const { paths, openapi } = await readDocument(url);
  const documented = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method} ${path.replace(/\{(\w+)\}/g, ":$1")}`),
  );

  expect(openapi).toBe("3.1.0");
  expect(registered.length).toBeGreaterThan(20);
  expect(documented).toEqual(expect.arrayContaining(registered));
  expect(documented).toEqual(
    expect.arrayContaining(["get /livez", "get /readyz", "get /metrics", "get /docs"]),
  );
  for (const [path, operations] of Object.entries(paths)) {
    for (const operation of Object.values(operations)) {
      expect(operation["x-scope"]).toMatch(/^(public|feed|read|export|act|admin)$/);
      expect(Object.keys(operation.responses).some((status) => status.startsWith("2"))).toBe(true);
      const inPath = (operation.parameters ?? []).filter((one) => one.in === "path").map(({ name }) => name);
      expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
    }
  }
});

test("every reference resolves, every name is used once, and every schema is one of JSON Schema 2020-12", async () => {
  const document = await readDocument();
  const operations = Object.values(document.paths).flatMap((one) => Object.values(one));
  const names = operations.map(({ operationId }) => operationId);
  const unresolved = [...referencesIn(document)].filter((one) => resolve(document, one) === undefined);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const schemas = [
    ...Object.values(document.components.schemas),
    ...operations.flatMap(({ parameters = [], requestBody, responses }) => [
      ...parameters.map(({ schema }) => schema),
      ...Object.values(requestBody?.content ?? {}).map(({ schema }) => schema),
      ...Object.values(responses).flatMap(({ content = {} }) =>
        Object.values(content).map(({ schema }) => schema),
      ),
    ]),
  ];

  expect(unresolved).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
  expect(schemas.length).toBeGreaterThan(100);
  expect(schemas.filter((schema) => ajv.validateSchema(schema) !== true)).toEqual([]);
});

/** Of the routes that answer nothing without one. */
const QUERIES: Readonly<Record<string, string>> = {
  "/api/v1/trends": "?zone=101",
  "/api/v1/find": "?text=e1",
  "/api/v1/blocklist": "?zone=101&form=json",
  "/api/v1/coverage/rules": `?zone=101&hour=${encodeURIComponent(new Date().toISOString())}`,
  "/api/v1/zones/{zone}/events/revisions": "?logId=e1&at=1",
  "/api/v1/rules/series": "?zone=101&rule=942100",
  "/api/v1/rules/replay": "?zone=101&rule=942100",
  "/api/v1/exclusions/replay": "?zone=101&rule=942100&path=/login",
  "/api/v1/review": "?zone=101",
  "/api/v1/review/samples": "?zone=101&rule=942100",
  "/api/v1/rules/facts": "?zone=101&rule=942100",
  "/api/v1/routing/test": "?zone=101&rule=942100&severity=error",
};

/** A verification with a difference, as the job stores it. */
const RUN: typeof requestedRuns.$inferInsert = {
  kind: "verify",
  zoneId: 101,
  fromAt: new Date(0),
  toAt: new Date(3_600_000),
  requestedAt: new Date(0),
  startedAt: new Date(0),
  endedAt: new Date(1_000),
  requestedBy: "ann",
  result: {
    kind: "verify",
    from: 0,
    to: 3_600_000,
    checks: [
      {
        name: "seals",
        sides: ["its seal", "stored"],
        compared: "1 hour",
        differenceCount: 1,
        differences: [{ at: 0, ruleId: null, expected: 2, found: 1, detail: "missing a" }],
        notes: [],
        failure: null,
      },
    ],
  },
};

test("answers have the members that the document names", async () => {
  await world.alerts().openSpike(0);
  await world.alerts().runAt(0);
  const { url } = await world.start();
  const key = await world.key("admin");
  const document = await readDocument(url);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "openapi");
  const operator = await world.key("operator");
  const make = (path: string, body: unknown, status: number) =>
    ask<{ readonly id: number }>(url, path, operator, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      status,
    });
  await world
    .database()
    .pool.query(
      "insert into coverage_windows (zone_id, starts_at, searched_through) values (101, date_trunc('hour', now()), now())",
    );
  await world
    .database()
    .pool.query(
      "insert into judged_hours (zone_id, starts_at, rules_through) values (101, date_trunc('hour', now()), now())",
    );
  await world
    .database()
    .pool.query("insert into forward_destinations (destination, seen_at) values ('siem', now())");
  await world
    .database()
    .pool.query(
      "insert into quarantined_entries (zone_id, route, reason, raw) values (101, 'list', 'x', '\\x00')",
    );
  const wanted = { matchers: { zone: [101] }, reason: "a test", durationMinutes: 5 };
  const silence = await make("/api/v1/silences", wanted, 201);
  const plan = await make("/api/v1/review/plans", { zone: 101, name: "A" }, 201);
  const [from, to] = [2, 1].map((hours) => new Date(Date.now() - hours * 3_600_000).toISOString());
  const run = await make("/api/v1/coverage/runs", { kind: "backfill", zone: 101, from, to }, 202);
  const [{ id }] = (await ask<{ items: [{ id: number }] }>(url, "/api/v1/spikes", key)).items;
  // The list has it beside the one that waits.
  await world.database().db.insert(requestedRuns).values(RUN);
  const checked: string[] = [];
  for (const [path, { get }] of Object.entries(document.paths)) {
    // This service has no channel whose message could be previewed.
    if (get === undefined || !path.startsWith("/api/v1/") || /stream|atom|preview/.test(path)) continue;
    const alertId = (await ask<{ items: [{ id: number }] }>(url, "/api/v1/alerts", key)).items[0].id;
    const ids = { quarantine: 1, spikes: id, silences: silence.id, runs: run.id, plans: plan.id };
    const known = Object.entries(ids).find(([part]) => path.includes(part));
    const address = path
      .replace(/\{(?:id|alert)\}/, String(known?.[1] ?? alertId))
      .replace("{zone}", "101")
      .replace("{destination}", "siem");
    const answer = await ask(url, `${address}${QUERIES[path] ?? ""}`, key);
    const where = `openapi#/paths/${path.replaceAll("/", "~1")}/get/responses/200/content/application~1json/schema`;
    const isValid = ajv.validate({ $ref: where }, answer);
    expect([path, isValid, ajv.errors]).toEqual([path, true, null]);
    checked.push(path);
  }
  expect(checked.length).toBeGreaterThan(10);
});

interface Refused {
  readonly status: number;
  readonly path: string;
  readonly of: string;
  readonly init?: RequestInit;
  /** None at all where it is null. */
  readonly role?: Parameters<typeof world.key>[0] | null;
}

const SPAN = { from: Date.now() - 3_600_000, to: Date.now() - 1_800_000 };
const search = (body: unknown, type = "application/json") => ({
  method: "POST",
  body: JSON.stringify(body),
  headers: { "content-type": type },
});
const ZONES = "/shield/event-logs/{shieldZoneId}";
const METRICS = "/shield/metrics/shield-zone/{shieldZoneId}/waf-rule/{ruleId}";
const ADVICE = "/shield/waf/rules/review-triggered/ai-recommendation/{shieldZoneId}/{ruleId}";

const REFUSED: readonly Refused[] = [
  { status: 400, path: "/api/v1/alerts/x", of: "/api/v1/alerts/{id}" },
  { status: 404, path: "/api/v1/alerts/999999", of: "/api/v1/alerts/{id}" },
  { status: 400, path: "/api/v1/silences/x", of: "/api/v1/silences/{id}" },
  { status: 400, path: "/api/v1/silences/x", of: "/api/v1/silences/{id}", init: { method: "DELETE" } },
  {
    status: 400,
    path: "/api/v1/keys/%0A",
    of: "/api/v1/keys/{key}",
    init: { method: "DELETE" },
    role: "admin",
  },
  {
    status: 400,
    path: "/api/v1/deliveries/x/replay",
    of: "/api/v1/deliveries/{id}/replay",
    init: search({}),
  },
  ...["rules?", "coverage?", "gaps?", "trends?zone=1&", "alerts?", "spikes?"].map((path) => {
    const [begin, end] = /alerts|spikes/.test(path) ? ["since", "until"] : ["from", "to"];
    const of = `/api/v1/${path.replace(/\?.*/, "")}`;
    return { status: 422, path: `/api/v1/${path}${begin}=2&${end}=1`, of };
  }),
  {
    status: 422,
    path: "/api/v1/silences",
    of: "/api/v1/silences",
    init: search({ matchers: { zone: [1] }, reason: "x" }),
  },
  { status: 415, path: "/api/v1/silences", of: "/api/v1/silences", init: search({}, "text/plain") },
  { status: 413, path: "/api/v1/silences", of: "/api/v1/silences", init: search("x".repeat(300_000)) },
  { status: 202, path: "/shield/event-logs/9/search", of: `${ZONES}/search`, init: search(SPAN) },
  { status: 400, path: "/shield/event-logs/9/search", of: `${ZONES}/search`, init: search({}) },
  { status: 401, path: "/shield/event-logs/9/search", of: `${ZONES}/search`, init: search({}), role: null },
  {
    status: 413,
    path: "/shield/event-logs/9/search",
    of: `${ZONES}/search`,
    init: search("x".repeat(300_000)),
  },
  { status: 415, path: "/shield/event-logs/9/search", of: `${ZONES}/search`, init: search({}, "text/csv") },
  {
    status: 202,
    path: "/shield/event-logs/9/export",
    of: `${ZONES}/export`,
    init: search(SPAN),
    role: "exporter",
  },
  {
    status: 403,
    path: "/shield/event-logs/9/export",
    of: `${ZONES}/export`,
    init: search(SPAN),
    role: "reader",
  },
  { status: 202, path: "/shield/event-logs/9/11-20-2026", of: `${ZONES}/{date}` },
  { status: 400, path: "/shield/event-logs/9/02-30-2026", of: `${ZONES}/{date}` },
  { status: 401, path: "/shield/event-logs/9/11-20-2026/", of: `${ZONES}/{date}`, role: null },
  { status: 401, path: "/shield/event-logs/101/01-01-1999", of: `${ZONES}/{date}` },
  { status: 202, path: "/shield/metrics/shield-zone/9/waf-rule/1", of: METRICS },
  { status: 400, path: "/shield/metrics/shield-zone/x/waf-rule/1", of: METRICS },
  { status: 401, path: "/shield/metrics/shield-zone/9/waf-rule/1", of: METRICS, role: null },
  { status: 202, path: "/shield/waf/rules/review-triggered/ai-recommendation/9/1", of: ADVICE },
  { status: 401, path: "/shield/waf/rules/review-triggered/ai-recommendation/9/1", of: ADVICE, role: null },
  { status: 400, path: "/apikey?page=0", of: "/apikey", role: "admin" },
  { status: 401, path: "/apikey", of: "/apikey", role: null },
  { status: 403, path: "/apikey", of: "/apikey" },
];

test("every refusal is one that the document names, in the form that it names", async () => {
  const { url } = await world.start({}, {}, { zoneIds: [101] });
  const document = await readDocument(url);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "openapi");
  for (const { status, path, of, init = {}, role = "operator" } of REFUSED) {
    const answer = await call(url, path, role === null ? undefined : await world.key(role), init);
    const method = (init.method ?? "GET").toLowerCase();
    const [type = ""] = String(answer.headers.get("content-type")).split(";");
    const where = ["paths", of, method, "responses", String(status), "content", type, "schema"];
    const pointer = where.map((name) => encodeURIComponent(name.replaceAll("/", "~1"))).join("/");
    const documented = resolve(
      document,
      `#/${where.map((name) => name.replaceAll("/", "\u0000")).join("/")}`,
    );

    expect([method, path, answer.status]).toEqual([method, path, status]);
    expect([where, documented === undefined]).toEqual([where, false]);
    const isValid = ajv.validate({ $ref: `openapi#/${pointer}` }, await answer.json());
    expect([path, isValid, ajv.errors]).toEqual([path, true, null]);
  }
});

test("S10: the docs page runs no script, has nothing inline, and loads its style sheet from its own origin", async () => {
  const { url } = await world.start();
  const page = await call(url, "/docs");
  const html = await page.text();
  const assets = [...html.matchAll(/<(?:script|link|img)[^>]*? (?:src|href)="([^"]*)"/g)].map(
    ([, asset = ""]) => asset,
  );

  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("content-security-policy")).toBe(
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  expect(html).not.toMatch(/<script|<style|<iframe|<form|<object|style="|\son\w+=|javascript:/i);
  expect(assets).toEqual(["data:,", "/docs/docs.css"]);
  const styles = await call(url, "/docs/docs.css");
  expect([styles.status, styles.headers.get("content-type")]).toEqual([200, "text/css; charset=utf-8"]);
});

test("the docs page shows each operation with its scope and command, and every link leads to a place on it", async () => {
  const { url } = await world.start();
  const html = await (await call(url, "/docs")).text();
  const { paths, components } = await readDocument(url);
  const operations = Object.values(paths).flatMap((one) => Object.values(one));
  const places = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  const links = [...html.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);

  expect(html.match(/<details><summary><b /g)).toHaveLength(operations.length);
  expect(places.size).toBe(html.match(/ id="/g)?.length);
  expect(links.filter((id) => !places.has(id))).toEqual([]);
  for (const name of Object.keys(components.schemas)) expect(places).toContain(`schema-${name}`);
  expect(html).toContain("Needs a key with the scope <code>act</code>.");
  expect(html).toContain(
    "curl -s -X POST -H &quot;AccessKey: $KEY&quot; -H &quot;Content-Type: application/json&quot; -d",
  );
  expect(html).toContain(`export LONGWATCH=${url} KEY=`);
});

test.each([
  ["/docs/json", "/openapi.json"],
  ["/docs/yaml", "/openapi.json"],
  ["/docs/", "/docs"],
])("%s leads to %s", async (path, to) => {
  const { url } = await world.start();
  const answer = await fetch(`${url}${path}`, { redirect: "manual" });
  expect([answer.status, answer.headers.get("location")]).toEqual([302, to]);
});

/** The words of JSON Schema and OpenAPI 3.1 that a schema of the document may have. */
const KEYWORDS = new Set(
  `$ref $schema additionalProperties anyOf allOf oneOf const default description enum example examples exclusiveMinimum format
  items maximum maxItems maxLength minimum minItems minLength not pattern properties propertyNames readOnly required title type`.split(
    /\s+/,
  ),
);

/** Each object schema in a schema, itself included. */
function* schemasIn(schema: unknown): Generator<Node> {
  if (Array.isArray(schema)) for (const one of schema) yield* schemasIn(one);
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return;
  const node = schema as Node;
  yield node;
  for (const word of ["additionalProperties", "anyOf", "allOf", "oneOf", "items", "not", "propertyNames"])
    yield* schemasIn(node[word]);
  for (const one of Object.values(node["properties"] ?? {})) yield* schemasIn(one);
}

test("the document keeps the recommended rules of Redocly: known words, licence, described tags, refusals, clear paths", async () => {
  const document = await readDocument();
  const operations = Object.values(document.paths).flatMap((one) => Object.values(one));
  const contents = operations.flatMap(({ requestBody, responses }) => [
    ...Object.values(requestBody?.content ?? {}),
    ...Object.values(responses).flatMap(({ content = {} }) => Object.values(content)),
  ]);
  const roots = [
    ...Object.values(document.components.schemas),
    ...operations.flatMap(({ parameters = [] }) => parameters.map(({ schema }) => schema)),
    ...contents.map(({ schema }) => schema),
  ];
  const schemas = [...schemasIn(roots)];
  const unknown = schemas.flatMap(Object.keys).filter((word) => !KEYWORDS.has(word));
  const undefinedNames = schemas.flatMap(({ required = [], properties = {} }) =>
    (required as string[]).filter((name) => !Object.hasOwn(properties as Node, name)),
  );
  const used = new Set(referencesIn(document));
  const unused = Object.keys(document.components.schemas).filter(
    (name) => !used.has(`#/components/schemas/${name}`),
  );
  const shapes = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, "{}"));

  expect(schemas.length).toBeGreaterThan(1_000);
  expect([unknown, undefinedNames, unused]).toEqual([[], [], []]);
  expect(document.info.license).toEqual({ name: "Apache License 2.0", identifier: "Apache-2.0" });
  expect(document.tags.filter(({ description }) => description === "")).toEqual([]);
  for (const { operationId, responses, security } of operations) {
    expect([operationId, Object.keys(responses).some((status) => status.startsWith("4"))]).toEqual([
      operationId,
      true,
    ]);
    expect(security).toBeInstanceOf(Array);
  }
  expect(new Set(shapes).size).toBe(shapes.length);
  expect(shapes.filter((path) => path !== "/" && path.endsWith("/"))).toEqual([]);
});

test("a route's document has its tag, example, optional body and words separated by commas", async () => {
  const { paths, tags } = await readDocument();
  const operations = Object.values(paths).flatMap((one) => Object.values(one));
  const names = new Set(tags.map(({ name }) => name));
  const undocumented = operations.filter(({ tags: own, summary }) => summary === "" || own.length !== 1);
  const vague = operations
    .flatMap(({ responses }) => Object.values(responses))
    .filter((one) => one.description === "Default Response");
  const state = paths["/api/v1/alerts"]?.["get"]?.parameters?.find(({ name }) => name === "state");

  expect([undocumented, vague]).toEqual([[], []]);
  for (const [tag = ""] of operations.map((one) => one.tags)) expect(names).toContain(tag);
  expect(paths["/api/v1/alerts/{id}/ack"]?.["post"]?.requestBody?.required).toBe(false);
  expect(paths["/api/v1/silences"]?.["post"]?.requestBody).toMatchObject({
    required: true,
    content: { "application/json": { example: { reason: "load test" } } },
  });
  expect(state).toMatchObject({ required: false, explode: false, schema: { type: "array" } });
  const search = paths[`${ZONES}/search`]?.["post"];
  expect(search?.requestBody?.content["application/json"]?.example).toMatchObject({ groupBy: ["ruleId"] });
  const { rows } = (search?.responses["200"]?.content?.["application/json"]?.schema["properties"] ??
    {}) as Node;
  expect(rows).toMatchObject({ anyOf: [{ type: "array" }, { type: "null" }] });
});

test("the address alone leads to the documentation, without a key", async () => {
  const { url } = await world.start();
  const answer = await fetch(url, { redirect: "manual" });
  expect([answer.status, answer.headers.get("location")]).toEqual([302, "/docs"]);
});
