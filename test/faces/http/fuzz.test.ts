import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { draws } from "../../support/sample.ts";
import { call, makeKey, startArchive } from "./start-archive.ts";

let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());

const NASTY = [
  "",
  "\u0000",
  "'; drop table api_keys; --",
  '"',
  "\\",
  "%",
  "_",
  "$1",
  "{{7*7}}",
  "../../etc/passwd",
  "\ud800",
  "\u202e",
  "NaN",
  "-1",
  "1e309",
  "99999999999999999999",
  "9007199254740993",
  "__proto__",
  "constructor",
  "c1.e30.AAAA",
];
const text = fc.oneof(fc.constantFrom(...NASTY), fc.string({ maxLength: 60 }), fc.nat().map(String));
const names = fc.constantFrom(
  ..."limit after all page perPage zone from to id name role zones masked expires __proto__ x".split(" "),
);
const query = fc.array(fc.tuple(names, text), { maxLength: 5 });
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.integer(),
    fc.double(),
    fc.constantFrom(null, true),
    fc.array(tie("any"), { maxLength: 3 }),
    fc.dictionary(fc.oneof(names, text), tie("any"), { maxKeys: 4 }),
  ),
})).any;

test("whatever is asked of any route, nothing fails and no SQL is shown", async () => {
  const known: { method: string; url: string }[] = [];
  const { url, lines } = await startArchive(database.url, {
    routes: [
      (app) =>
        void app.addHook("onRoute", (route) => {
          // An event stream has no end to wait for.
          if (route.url.endsWith("/stream")) return;
          for (const method of [route.method].flat()) known.push({ method, url: route.url });
        }),
    ],
  });
  const { key } = await makeKey(database, "admin");

  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...known),
      fc.array(text, { minLength: 3, maxLength: 3 }),
      query,
      fc.option(value),
      async (route, params, asked, body) => {
        const path = route.url.replaceAll(/:\w+/g, () =>
          encodeURIComponent((params.pop() ?? "").toWellFormed()),
        );
        const search = new URLSearchParams(
          asked.map(([name, given]): [string, string] => [name, given.toWellFormed()]),
        ).toString();
        const hasBody = body !== null && !["GET", "HEAD"].includes(route.method);
        const response = await call(url, `${path}?${search}`, key, {
          method: route.method,
          ...(hasBody ? { body: JSON.stringify(body) } : {}),
        });
        const answer = await response.text();

        expect(response.status, `${route.method} ${path}: ${answer}`).toBeLessThan(500);
        expect(answer).not.toMatch(/select |insert |syntax error|node_modules|\bpg_/i);
      },
    ),
    { numRuns: draws(100, 500) },
  );
  expect(lines.join("")).not.toContain("request failed");
});

test("a NUL character that reaches the database is the request's mistake", async () => {
  const { url } = await startArchive(database.url, {
    routes: [
      (app) =>
        void app.get("/echo", { config: { access: "public" } }, (asked) =>
          database.pool.query("select $1::text", [(asked.query as { q: string }).q]),
        ),
    ],
  });

  expect((await call(url, "/echo?q=fine")).status).toBe(200);
  expect((await call(url, "/echo?q=%00")).status).toBe(400);
});
