import { expect, test } from "vitest";
import { z } from "zod";
import type { Access } from "#faces/http/keys/guard.ts";
import type { Role } from "#model/kinds.ts";
import { scopesOf } from "#model/roles.ts";
import type { Caller } from "#operations/caller.ts";
import { startHttp } from "./start-http.ts";

function caller(role: Role, zoneIds: readonly number[] | null = null): Caller {
  return { keyId: role, name: role, roles: [role], scopes: scopesOf([role]), zoneIds, masked: false };
}

/** Keys are named like their holders. */
const CALLERS: Readonly<Record<string, Caller>> = {
  reader: caller("reader"),
  exporter: caller("exporter"),
  operator: caller("operator"),
  admin: caller("admin"),
  "reader-101": caller("reader", [101]),
};

function startWith(access: Access, path = "/asked") {
  return startHttp({
    authenticate: async (key) => CALLERS[key] ?? null,
    routes: [
      (app) => void app.get(path, { config: { access } }, (request) => request.caller?.name ?? "nobody"),
    ],
  });
}

async function ask(url: string, key?: string) {
  const response = await fetch(url, { headers: key === undefined ? {} : { AccessKey: key } });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

test("S3: a route that declares no access keeps the server from starting", async () => {
  const starting = startHttp({ routes: [(app) => void app.get("/open-door", () => "come in")] });

  await expect(starting).rejects.toThrow("route GET /open-door declares no access");
});

test.each([
  { scope: "read", allowed: ["reader", "exporter", "operator", "admin"] },
  { scope: "export", allowed: ["exporter", "operator", "admin"] },
  { scope: "act", allowed: ["operator", "admin"] },
  { scope: "admin", allowed: ["admin"] },
] as const)("S3: the scope $scope is that of $allowed", async ({ scope, allowed }) => {
  const { url } = await startWith({ scope });
  const least = `This key lacks the scope ${scope}. Use a key with the role ${allowed[0]} or higher.`;
  const answers = await Promise.all(
    ["reader", "exporter", "operator", "admin"].map(async (key) => [
      key,
      (await ask(`${url}/asked`, key)).status,
    ]),
  );
  const refused = answers.filter(([, status]) => status === 403).map(([key]) => String(key));
  for (const key of refused)
    expect(JSON.parse((await ask(`${url}/asked`, key)).text)).toMatchObject({ detail: least });

  expect(answers.filter(([, status]) => status === 200).map(([key]) => key)).toEqual(allowed);
  expect(answers.filter(([, status]) => status !== 200).every(([, status]) => status === 403)).toBe(true);
});

test.each([
  [
    "is missing",
    undefined,
    "The request has neither the header AccessKey nor the header Authorization: Bearer.",
  ],
  [
    "is unknown",
    "lw_00000000_nobody",
    "The access key is not valid. The key may be wrong, revoked or expired.",
  ],
  [
    "is too long to be one",
    "x".repeat(2_000),
    "The access key is not valid. The key may be wrong, revoked or expired.",
  ],
])("a key that %s is a 401", async (_name, key, detail) => {
  const { url } = await startWith({ scope: "read" });
  const answer = await ask(`${url}/asked`, key);

  expect(answer.status).toBe(401);
  expect(JSON.parse(answer.text)).toMatchObject({ type: "urn:longwatch:problem:unauthorized", detail });
});

test("the key is read from the header only: in the address it counts for nothing", async () => {
  const { url } = await startWith({ scope: "read" });

  expect((await ask(`${url}/asked?AccessKey=admin&accessKey=admin`)).status).toBe(401);
});

test.each([
  ["zone=101", 200],
  ["zone=101&zone=101", 200],
  ["zone=102", 403],
  ["zone=101&zone=102", 403],
  ["zone=101,102", 403],
  ["zone=0x65", 403],
  ["zone=", 403],
  ["", 403],
])("S3: a key for zone 101 asking for ?%s gets %i", async (query, status) => {
  const { url } = await startWith({ scope: "read", zone: "zone" });

  expect((await ask(`${url}/asked?${query}`, "reader-101")).status).toBe(status);
  expect((await ask(`${url}/asked?${query}`, "reader")).status).toBe(200);
});

test("S3: the zone in the path counts, whatever a query says", async () => {
  const { url } = await startWith({ scope: "read", zone: "zoneId" }, "/zones/:zoneId");

  expect((await ask(`${url}/zones/101?zoneId=102`, "reader-101")).status).toBe(200);
  expect((await ask(`${url}/zones/102?zoneId=101`, "reader-101")).status).toBe(403);
  expect((await ask(`${url}/zones/%31%30%32`, "reader-101")).status).toBe(403);
});

test("S17: metrics need a key of every zone with the scope read unless they are made public", async () => {
  const options = { authenticate: async (key: string) => CALLERS[key] ?? null };
  const closed = await startHttp({ ...options, areMetricsPublic: false });
  const open = await startHttp(options);

  expect((await ask(`${closed.url}/metrics`)).status).toBe(401);
  expect((await ask(`${closed.url}/metrics`, "reader")).status).toBe(200);
  expect((await ask(`${open.url}/metrics`)).status).toBe(200);
  // They are of every zone and channel.
  expect((await ask(`${closed.url}/metrics`, "reader-101")).status).toBe(403);
  expect((await ask(`${closed.url}/livez`)).status).toBe(200);
});

test("every broken rule of a request comes at once, with its field and value, but never a secret", async () => {
  const body = z.strictObject({
    count: z.int().min(1),
    apiKey: z.string().max(3),
    kinds: z.array(z.enum(["a", "b"])),
  });
  const { url } = await startHttp({
    routes: [
      (app) => void app.post("/take", { config: { access: "public" }, schema: { body } }, () => "taken"),
    ],
  });
  const response = await fetch(`${url}/take`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ count: 0, apiKey: "canary", kinds: ["a", "c"], more: 1 }),
  });
  const problem = (await response.json()) as { mistakes: { field: string }[] };

  expect(response.status).toBe(400);
  expect(problem).toMatchObject({ type: "urn:longwatch:problem:invalid-request", status: 400 });
  expect(problem.mistakes).toEqual([
    { field: "count", value: "0", rule: expect.stringContaining("1") },
    { field: "apiKey", rule: expect.stringContaining("3") },
    { field: "kinds[1]", value: '"c"', rule: "must be one of a, b" },
    { field: "more", rule: "is not a known member of this request" },
  ]);
  expect(JSON.stringify(problem)).not.toContain("canary");
});

test.each([
  ["native", { type: "urn:longwatch:problem:unauthorized", title: "Unauthorized", status: 401 }],
  [
    "bare",
    { type: "https://tools.ietf.org/html/rfc9110#section-15.5.2", title: "Unauthorized", status: 401 },
  ],
  ["status-code", { statusCode: 401 }],
  ["message", { Message: "Authorization has been denied for this request." }],
] as const)("a refusal is worded in the form %s where the route says so", async (errorForm, expected) => {
  const { url } = await startHttp({
    routes: [(app) => void app.get("/asked", { config: { access: { scope: "read" }, errorForm } }, () => "")],
  });

  expect(JSON.parse((await ask(`${url}/asked`)).text)).toMatchObject(expected);
});

test("S18: a body nested too deep is refused, one that is only long is not", async () => {
  const { url } = await startHttp({
    routes: [(app) => void app.post("/take", { config: { access: "public" } }, () => "taken")],
  });
  const post = async (body: string) =>
    (await fetch(`${url}/take`, { method: "POST", body, headers: { "content-type": "application/json" } }))
      .status;

  expect(await post("[".repeat(100_000) + "]".repeat(100_000))).toBe(400);
  expect(await post("[".repeat(33) + "]".repeat(33))).toBe(400);
  expect(await post("[".repeat(32) + "]".repeat(32))).toBe(200);
  expect(await post(`[${"{},".repeat(20_000)}1]`)).toBe(200);
});
