import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { renderDocs } from "../../../src/http/openapi/docs-page.ts";
import type { OpenApi } from "../../../src/http/openapi/openapi.ts";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";
import { HOSTILE } from "./hostile.ts";

const world = openApiWorld();

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
          app.addHook("onRoute", ({ method, url: path }) => {
            for (const one of [method].flat())
              if (one !== "HEAD") registered.push(`${one.toLowerCase()} ${path}`);
          }),
      ],
    },
  );
  const { paths, openapi } = await ask<OpenApi>(url, "/openapi.json");
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
      expect(operation["x-scope"]).toMatch(/^(public|read|export|act|admin)$/);
      expect(Object.keys(operation.responses).some((status) => status.startsWith("2"))).toBe(true);
      const inPath = operation.parameters.filter((one) => one.in === "path").map(({ name }) => name);
      expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
    }
  }
});

test("every reference resolves, every name is used once, and every schema is one of JSON Schema 2020-12", async () => {
  const { url } = await world.start();
  const document = await ask<OpenApi>(url, "/openapi.json");
  const operations = Object.values(document.paths).flatMap((one) => Object.values(one));
  const names = operations.map(({ operationId }) => operationId);
  const unresolved = [...referencesIn(document)].filter((one) => resolve(document, one) === undefined);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const schemas = [
    ...Object.values(document.components.schemas),
    ...operations.flatMap(({ parameters, requestBody, responses }) => [
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

test("what is answered is what the document says", async () => {
  await world.alerts().openSpike(0);
  await world.alerts().runAt(0);
  const { url } = await world.start();
  const key = await world.key("operator");
  const document = await ask<OpenApi>(url, "/openapi.json");
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "openapi");
  const silence = await ask(url, "/api/v1/silences", await world.key("operator"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ matchers: { zone: [101] }, reason: "a test", durationMinutes: 5 }),
    status: 201,
  });
  const [{ id }] = (await ask<{ items: [{ id: number }] }>(url, "/api/v1/spikes", key)).items;
  const checked: string[] = [];
  for (const [path, { get }] of Object.entries(document.paths)) {
    if (get === undefined || !path.startsWith("/api/v1/") || /stream|atom|keys/.test(path)) continue;
    const alertId = (await ask<{ items: [{ id: number }] }>(url, "/api/v1/alerts", key)).items[0].id;
    const ids = path.includes("spikes") ? id : path.includes("silences") ? silence["id"] : alertId;
    const address = path.replace("{id}", String(ids));
    const answer = await ask(url, `${address}${path.endsWith("trends") ? "?zone=101" : ""}`, key);
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
  { status: 400, path: "/api/v1/keys/X", of: "/api/v1/keys/{id}", init: { method: "DELETE" }, role: "admin" },
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
  { status: 401, path: "/shield/event-logs/9/11-20-2026/", of: `${ZONES}/{date}/`, role: null },
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
  const document = await ask<OpenApi>(url, "/openapi.json");
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

test("S10: the docs page runs nothing, loads nothing and is let in by its own hash alone", async () => {
  const { url } = await world.start();
  const page = await call(url, "/docs");
  const html = await page.text();

  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("content-security-policy")).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/=]{44}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  );
  expect(html).not.toMatch(
    /<script|<link|<img|<iframe|<form|<object|style="|\son\w+=|javascript:|https?:\/\/(?!127)/i,
  );
  for (const target of html.matchAll(/href="#([^"]+)"/g)) expect(html).toContain(`id="${target[1]}"`);
});

test("the address alone leads to the documentation, without a key", async () => {
  const { url } = await world.start();
  const answer = await fetch(url, { redirect: "manual" });
  expect([answer.status, answer.headers.get("location")]).toEqual([302, "/docs"]);
});

test("S10: no text of the document becomes markup in the page", () => {
  for (const text of HOSTILE) {
    const type = { type: "object", properties: { [text]: { description: text, enum: [text], const: text } } };
    const content = { [text]: { schema: type, example: { [text]: text } } };
    const html = renderDocs({
      openapi: "3.1.0",
      info: { title: text, version: text, description: text },
      servers: [],
      tags: [{ name: text }],
      paths: {
        [text]: {
          get: {
            operationId: "x",
            tags: [text],
            summary: text,
            description: text,
            parameters: [
              { name: text, in: "query", required: true, description: text, schema: { type: text } },
            ],
            requestBody: { required: true, content },
            responses: { 200: { description: text, content }, 400: { description: text } },
            security: [],
            "x-scope": text,
          },
        },
      },
      components: {
        schemas: { [text]: type, Other: { $ref: `#/components/schemas/${text}` } },
        securitySchemes: {},
      },
    });
    expect(html).not.toMatch(/<script>alert|<img|<id>forged|<!--|<!\[CDATA/);
    const tags = new Set(
      [...html.matchAll(/<(\/?[a-z!][\w]*)/gi)].map(([, tag]) => tag?.toLowerCase().replace("/", "")),
    );
    expect([...tags].filter((tag) => !KNOWN_TAGS.has(tag ?? ""))).toEqual([]);
  }
});

const KNOWN_TAGS = new Set(
  "!doctype html head meta title style body div nav h1 h2 h3 h4 a span main p pre section code table tr th td details summary".split(
    " ",
  ),
);
