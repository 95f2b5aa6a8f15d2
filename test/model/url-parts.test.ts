import { sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bound, duck, join, raw } from "#archive/rules/sql/to-condition.ts";
import { cleanText } from "#lib/text.ts";
import { toUrlPart, toUrlPartInDuckdb, toUrlPartSql, URL_PARTS } from "#model/record-parts.ts";
import { type ArchiveFolder, openFolder } from "../archive/archive-folder.ts";
import { HOSTILE } from "../archive/query/draw.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";

let database: MigratedDatabase;
let folder: ArchiveFolder;
beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
});
afterAll(() => Promise.all([database.drop(), folder.close()]));

test.each([
  ["https://shop.example.com/catalog/item?id=1#top", "shop.example.com", "/catalog/item"],
  ["HTTPS://u:p@Shop.Example.com:8443/a/b;v=1?x", "shop.example.com", "/a/b;v=1"],
  ["https://shop.example.com", "shop.example.com", "/"],
  ["https://shop.example.com?x=1", "shop.example.com", "/"],
  ["https://[2001:db8::1]:443/a", "[2001:db8::1]", "/a"],
  ["https://a@b@c.example/x", "c.example", "/x"],
  ["/login?next=https://evil.example/", "", "/login"],
  ["/redirect/https://evil.example/x", "", "/redirect/https://evil.example/x"],
  ["//evil.example/x", "", "//evil.example/x"],
  ["https:///x", "", "/x"],
  ["://h/x", "", "://h/x"],
  ["/%61dmin/..%2f?x", "", "/%61dmin/..%2f"],
  ["*", "", "*"],
  ["?x=1", "", "/"],
  ["", "", ""],
])("the URL %j has the host %j and the path %j", (url, host, path) => {
  expect(URL_PARTS.map((part) => toUrlPart(part, url))).toEqual([host, path]);
});

test("Postgres and DuckDB find the parts of a hostile URL that toUrlPart finds", async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "http",
      "https",
      "://",
      ":",
      "/",
      "//",
      "?",
      "#",
      "@",
      "[",
      "]",
      "[::1]",
      "\\",
      ".",
      "K",
      "İ",
      "A",
    ),
    fc.constantFrom(...HOSTILE),
    fc.string({ unit: "binary", maxLength: 3 }),
  );
  const url = fc
    .array(piece, { maxLength: 12 })
    .map((parts) => cleanText(parts.join(""), Number.POSITIVE_INFINITY));
  const urls = ["", `https://h/${"a".repeat(9_000)}?x`, "http://".repeat(2_000), ...fc.sample(url, 600)];
  const wanted = urls.map((one) => URL_PARTS.map((part) => toUrlPart(part, one)));
  const [columns, inDuckdb] = [toUrlPartSql, toUrlPartInDuckdb].map((toSql) =>
    URL_PARTS.map((part) => toSql(part, "url")).join(", "),
  ) as [string, string];

  const inPostgres = await database.db.execute<{ parts: string[] }>(sql`
    select array[${sql.raw(columns)}] as parts
    from unnest(${sql.param(urls)}::text[]) with ordinality as u(url, place) order by place`);
  expect(inPostgres.rows.map(({ parts }) => parts)).toEqual(wanted);

  const rows = join(
    urls.map((one, place) => duck`(${place}, ${bound(one)})`),
    ", ",
  );
  const [found] = await folder.duckdb.run(
    [duck`select json_array(${raw(inDuckdb)}) from (values ${rows}) u(place, url) order by place`],
    {},
  );
  expect(found?.map(([row]) => JSON.parse(row as string) as unknown)).toEqual(wanted);
});

test("an unknown URL has no host and no path in either engine", async () => {
  for (const part of URL_PARTS) {
    const { rows } = await database.db.execute<{ text: string }>(
      sql`select ${sql.raw(toUrlPartSql(part, "u.url"))} as text from (values (null::text)) u(url)`,
    );
    const [found] = await folder.duckdb.run(
      [raw(`select ${toUrlPartInDuckdb(part, "u.url")} from (values (null::varchar)) u(url)`)],
      {},
    );
    expect([rows[0]?.text, found?.[0]?.[0]]).toEqual(["", ""]);
  }
});
