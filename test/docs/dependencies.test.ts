import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(path.join(ROOT, file), "utf8");

test.each([
  ["README.md", "dependencies"],
  ["CONTRIBUTING.md", "devDependencies"],
] as const)("%s has a line for each of the %s and no other package", (file, group) => {
  const manifest = JSON.parse(read("package.json")) as Record<typeof group, Record<string, string>>;
  const section = read(file).split("\n## Dependencies\n")[1]?.split("\n## ")[0] ?? "";
  const rows = section.match(/^\| (?!Package|-).*/gm) ?? [];
  const named = rows.flatMap((row) => row.split(" | ")[0]?.slice(2).split(", ") ?? []);
  expect(named.toSorted()).toEqual(Object.keys(manifest[group]).toSorted());
});
