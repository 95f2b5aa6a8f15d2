import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm;

const NAMES = globSync("db/schema/*.ts").flatMap((file) =>
  [...readFileSync(file, "utf8").matchAll(/pgTable\(\s*"(\w+)"/g)].flatMap(([, name]) => name ?? []),
);

test("no statement in db and jobs names a table of the schema as text", () => {
  expect(NAMES).toContain("waf_events");
  const found = globSync(["db/**/*.ts", "jobs/**/*.ts"])
    .filter((file) => !file.startsWith("db/schema/"))
    .flatMap((file) => findNamed(readFileSync(file, "utf8")).map((text) => `${file}: ${text}`));
  expect(found).toEqual([]);
});

test.each([
  "select 1 from waf_events e",
  "insert into leases (name)",
  "update alerts a set state = 'firing'",
  "copy waf_events (ip) from stdin",
  "where waf_events.zone_id = 1",
])("a table named as text is found: %s", (statement) => {
  expect(findNamed(`sql\`${statement}\``)).toHaveLength(1);
});

function findNamed(source: string): string[] {
  const afterKeyword = `\\b(?:from|join|into|update|table|only|using|copy)\\s+(?:${NAMES.join("|")})\\b`;
  const beforeColumn = `\\b(?:${NAMES.filter((name) => name.includes("_")).join("|")})\\.[a-z]`;
  return source.replaceAll(COMMENT, "").match(new RegExp(`${afterKeyword}|${beforeColumn}`, "gi")) ?? [];
}
