import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "..", "..");
const PAGE = path.join(ROOT, "docs", "architecture.md");
const UPDATE = "node_modules/.bin/vitest run test/docs/architecture.test.ts --update";
const TABLE = /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?export const \w+ = pgTable\(\s*"(\w+)"/g;

/** Returns a line for each table: its name, and the first sentence of its docstring up to a semicolon. */
function listTables(): string[] {
  const files = globSync("db/schema/*.ts", { cwd: ROOT });
  const tables = files.flatMap((file) => [...readFileSync(path.join(ROOT, file), "utf8").matchAll(TABLE)]);
  return tables
    .map(([, docstring = "", name]) => {
      const text = docstring.replaceAll(/\s*\n? \*? ?\s*/g, " ").trim();
      return `- \`${name}\`: ${/^.*?(?=;|\.(?: |$))/.exec(text)?.[0] ?? "no sentence"}`;
    })
    .toSorted();
}

test("docs/architecture.md has the first sentence of every table's docstring", async () => {
  const page = readFileSync(PAGE, "utf8");
  const made = page.replace(
    /<!-- tables -->[\s\S]*<!-- \/tables -->/,
    () => `<!-- tables -->\n\n${listTables().join("\n")}\n\n<!-- /tables -->`,
  );
  expect(listTables().length).toBeGreaterThan(40);
  await expect(made, `make docs/architecture.md again: ${UPDATE}`).toMatchFileSnapshot(PAGE);
});

test("every file and folder that docs/architecture.md names exists", () => {
  const names = [
    ...readFileSync(PAGE, "utf8").matchAll(/`((?:src|jobs|db|test|migrations|deploy)(?:\/[\w./-]+)?)`/g),
  ];
  expect(names.length).toBeGreaterThan(20);
  expect(names.map(([, name = ""]) => name).filter((name) => !existsSync(path.join(ROOT, name)))).toEqual([]);
});
