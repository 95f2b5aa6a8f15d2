import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bound, duck } from "#archive/rules/sql/to-condition.ts";
import { toUrlPattern } from "#detection/rules/exclusion/write-forms.ts";
import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { type ArchiveFolder, openFolder } from "../../archive/archive-folder.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";

let database: MigratedDatabase;
let folder: ArchiveFolder;
beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
});
afterAll(async () => {
  await Promise.all([database.drop(), folder.close()]);
});

/** Whether JavaScript, Postgres and DuckDB each find the pattern in the text. */
async function findEverywhere(pairs: readonly (readonly [template: string, url: string])[]) {
  const asked = pairs.map(([template, url]) => [toUrlPattern(template), url] as const);
  const { rows } = await database.pool.query<{ found: boolean }>(
    "select url ~ pattern as found from unnest($1::text[], $2::text[]) with ordinality t(pattern, url, n) order by n",
    [asked.map(([pattern]) => pattern), asked.map(([, url]) => url)],
  );
  const found: string[] = [];
  for (const [pattern, url] of asked) {
    const statement = duck`select regexp_matches(${bound(url)}, ${bound(pattern)})::text`;
    found.push(...(await folder.files.read([], [statement])));
  }
  return asked.map(([pattern, url], index) => ({
    javaScript: new RegExp(pattern, "u").test(url),
    postgres: rows[index]?.found,
    duckdb: found[index] === "true",
  }));
}

const everywhere = (is: boolean) => ({ javaScript: is, postgres: is, duckdb: is });

test.each<[template: string, url: string, is: boolean]>([
  ["/reviews/{n}", "https://shop.example.test/reviews/12?q=1", true],
  ["/reviews/{n}", "https://shop.example.test/reviews/12#top", true],
  ["/reviews/{n}", "/reviews/12", true],
  ["/reviews/{n}", "https://shop.example.test/reviews/12/photos", false],
  ["/reviews/{n}", "https://shop.example.test/reviews/{n}", false],
  ["/reviews/{n}", "https://shop.example.test/x?u=https://a/reviews/12", false],
  ["/a/{uuid}", "https://h/a/0b7e3c1a-9d2f-4c11-8e7a-1f2d3c4b5a69", true],
  ["/a/{slug}/b", "https://h/a/red-shoes/b", true],
  ["/a/{slug}/b", "https://h/a/red-shoes/x/b", false],
  ["/a/{...}", "https://h/a/b/c/d?x", true],
  ["/", "https://h", true],
  ["/", "https://h/?q=1", true],
  ["/", "https://h/x", false],
  ["/{n}", "https://h/12", false],
  ["/{n}", "https://h/{n}", true],
  ["/.*", "https://h/anything", false],
  ["/.*", "https://h/.*", true],
  ["/(a+)+$", "https://h/(a+)+$", true],
  ["/(a+)+$", `https://h/${"a".repeat(5_000)}!`, false],
  [String.raw`/\d[^x]{3}|\Q`, String.raw`https://h/\d[^x]{3}|\Q`, true],
  ["/a\nb", "https://h/a\nb", true],
  ["/(?i)***=x", "https://h/(?i)***=x", true],
  ["/ünï🙂", "https://h/ünï🙂", true],
])("the pattern of %j and the URL %j give %s in every engine", async (template, url, is) => {
  expect(await findEverywhere([[template, url]])).toEqual([everywhere(is)]);
});

// A URL with the text of a placeholder is the exception: its template cannot be told from that of a number.
test("the pattern of a URL's template finds the URL in every engine", async () => {
  const segment = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 12 }),
    fc.constantFrom("..", "{", "(?:", "[[:alpha:]]", "\\y", "$", "^", "*", "\u202e", "12", "a1b2c3d4e5", "…"),
    fc.string({ minLength: 60, maxLength: 90 }),
  );
  const urls = fc.sample(fc.array(segment, { maxLength: 12 }), 150).map((segments) => {
    const path = segments.map((text) => text.replaceAll(/[?#/\0]/g, "-").toWellFormed());
    return `https://shop.example.test/${path.join("/")}`;
  });
  const found = await findEverywhere(urls.map((url) => [templateOf(url), url]));
  for (const [index, one] of found.entries())
    expect({ url: urls[index], ...one }).toEqual({ url: urls[index], ...everywhere(true) });
});
