import { expect, test } from "vitest";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const world = openApiWorld();
const start = () => world.start({ clock: () => NOW });

interface Refused {
  readonly type: string;
  readonly detail: string;
  readonly mistakes?: readonly { readonly field: string; readonly value?: string; readonly rule: string }[];
}

const SPANS = ["trends?zone=101&", "rules?", "coverage?", "gaps?"].map(
  (path) => [path, "from", "to"] as const,
);
const SINCE = ["alerts?", "spikes?"].map((path) => [path, "since", "until"] as const);

test.each([...SPANS, ...SINCE])("%s refuses a day that is in no calendar", async (path, begin, end) => {
  const { url } = await start();
  const key = await world.key("reader");
  for (const day of ["2026-02-30", "2026-11-31", "2025-02-29"]) {
    const query = `${begin}=${day}T00:00:00Z&${end}=2026-11-20T00:00:00Z`;
    const refused = await ask<Refused>(url, `/api/v1/${path}${query}`, key, { status: 400 });
    expect(refused.mistakes).toMatchObject([{ field: begin, value: `"${day}T00:00:00Z"` }]);
  }
});

test.each([...SPANS, ...SINCE])(
  "%s refuses a span that ends before it begins, however little",
  async (path, begin, end) => {
    const { url } = await start();
    const key = await world.key("reader");
    for (const earlier of ["2026-11-20T14:10:00Z", "2026-11-20T14:30:00Z"]) {
      const query = `${begin}=2026-11-20T14:30:00Z&${end}=${earlier}`;
      const refused = await ask<Refused>(url, `/api/v1/${path}${query}`, key, { status: 422 });
      expect(refused).toMatchObject({
        type: "urn:longwatch:problem:invalid-span",
        mistakes: [{ field: end, rule: `must be after ${begin}, 2026-11-20T14:30:00.000Z` }],
      });
    }
  },
);

test("a plus of a zone's offset may be sent as it is", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const query = "from=2026-11-20T14:00:00+02:00&to=2026-11-20T14:00:00%2B01:00";

  expect(await ask(url, `/api/v1/trends?zone=101&${query}`, key)).toMatchObject({
    from: "2026-11-20T12:00:00.000Z",
    to: "2026-11-20T13:00:00.000Z",
  });
});

test("the last moment that may be asked for is answered in four-digit years", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const path = "/api/v1/trends?zone=101&width=day&to=9999-12-";

  expect(await ask(url, `${path}30T23:59:59.999Z`, key)).toMatchObject({ to: "9999-12-31T00:00:00.000Z" });
  await ask(url, `${path}31T00:00:00Z`, key, { status: 400 });
});

test.each([
  ["trends?zone=101&zone=102", "zone", "is given more than once"],
  ["alerts?limit=1&limit=2", "limit", "is given more than once"],
  ["keys?limit=1&limit=2", "limit", "is given more than once"],
  ["keys?limit=1e2", "limit", "must be a whole number"],
])("%s is refused in words of the request: %s %s", async (path, field, rule) => {
  const { url } = await start();
  const refused = await ask<Refused>(url, `/api/v1/${path}`, await world.key("admin"), { status: 400 });

  expect(refused).toMatchObject({ detail: `${field}: ${rule}`, mistakes: [{ field, rule }] });
});

test("a body is refused in words of JSON", async () => {
  const { url } = await start();
  const init = {
    method: "POST",
    body: JSON.stringify({ name: ["x"], role: "reader", masked: "no" }),
    status: 400,
  };
  const refused = await ask<Refused>(url, "/api/v1/keys", await world.key("admin"), init);

  expect(refused.mistakes).toMatchObject([
    { field: "name", rule: "must be a text" },
    { field: "masked", rule: "must be true or false" },
  ]);
});

test("every refusal for mistakes says the first one in its detail", async () => {
  const { url } = await start();
  const admin = await world.key("admin");
  const body = JSON.stringify({ name: "x", role: "admin", masked: true });
  const restricted = await ask<Refused>(url, "/api/v1/keys", admin, { method: "POST", body, status: 400 });
  const cursor = await ask<Refused>(url, "/api/v1/keys?after=x", admin, { status: 400 });

  expect(restricted.detail).toMatch(/^role: /);
  expect(cursor.detail).toMatch(/^after: must be the `next`/);
});

test.each(["silences", "alerts/999/ack"])(
  "a body of another media type for %s is refused as that, and not as the text that it is",
  async (path) => {
    const { url } = await start();
    const init = { method: "POST", body: "{}", headers: { "content-type": "text/plain" }, status: 415 };
    const refused = await ask<Refused>(url, `/api/v1/${path}`, await world.key("operator"), init);

    expect(refused.detail).toBe("The request body must be sent as application/json.");
  },
);

test("a client that names a media type with every request may send no body where none is needed", async () => {
  const { url } = await start();
  const key = await world.key("operator");
  const headers = { "content-type": "application/json" };
  const acted = await call(url, "/api/v1/alerts/999/ack", key, { method: "POST", headers });
  const ended = await call(url, "/api/v1/silences/999", key, { method: "DELETE", headers });
  const wanted = await ask<Refused>(url, "/api/v1/silences", key, { method: "POST", headers, status: 400 });

  // There is no such alert or silence, which is another matter.
  expect([acted.status, ended.status]).toEqual([404, 404]);
  expect(wanted.detail).toMatch(/^body: must be a JSON object/);
});

test("HEAD has the headers of GET with its ETag, and answers 304 to a matching ETag", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const got = await call(url, "/api/v1/zones", key);
  const head = await call(url, "/api/v1/zones", key, { method: "HEAD" });
  const etag = String(got.headers.get("etag"));
  const known = await call(url, "/api/v1/zones", key, { method: "HEAD", headers: { "if-none-match": etag } });

  expect(etag).toMatch(/^W\/"/);
  expect(head.headers.get("etag")).toBe(etag);
  expect(head.headers.get("content-length")).toBe(String((await got.text()).length));
  expect(known.status).toBe(304);
});

test.each([
  ["without the mark of weakness", (etag: string) => etag.replace("W/", "")],
  ["among others", (etag: string) => `"other", ${etag}`],
  ["as any", () => "*"],
])("an ETag is known again %s", async (_how, toHeader) => {
  const { url } = await start();
  const key = await world.key("reader");
  const etag = String((await call(url, "/api/v1/zones", key)).headers.get("etag"));
  const again = await call(url, "/api/v1/zones", key, { headers: { "if-none-match": toHeader(etag) } });
  const other = await call(url, "/api/v1/zones", key, { headers: { "if-none-match": '"other"' } });

  expect([again.status, await again.text(), other.status]).toEqual([304, "", 200]);
});

test("a silence that was made is found where its Location says", async () => {
  const { url } = await start();
  const key = await world.key("operator");
  const body = JSON.stringify({ matchers: { zone: [101, 102] }, reason: "load test", durationMinutes: 5 });
  const made = await call(url, "/api/v1/silences", key, { method: "POST", body });
  const location = String(made.headers.get("location"));

  expect(made.status).toBe(201);
  expect(await ask(url, location, key)).toMatchObject({ state: "active", matchers: { zone: [101, 102] } });
  const own = await world.key("reader", { zoneIds: [102] });
  expect(await ask(url, location, own)).toMatchObject({ matchers: { zone: [102] } });
  await ask(url, location, await world.key("reader", { zoneIds: [103] }), { status: 404 });
});

test.each(["/api/v1/zones", "/api/v1/alerts/999", "/openapi.json", "/livez"])(
  "%s says which methods it takes",
  async (path) => {
    const { url } = await start();
    const asked = await call(url, path, undefined, { method: "OPTIONS" });
    const refused = await call(url, path, undefined, { method: "PATCH" });

    expect([asked.status, asked.headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS"]);
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
    expect(await refused.json()).toMatchObject({ type: "urn:longwatch:problem:method-not-allowed" });
    expect((await call(url, `${path}/nothing`, undefined, { method: "OPTIONS" })).status).toBe(404);
  },
);
