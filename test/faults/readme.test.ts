import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const tests = path.join(import.meta.dirname, "..");
const page = readFileSync(path.join(import.meta.dirname, "README.md"), "utf8");
const rows = page.split("\n").filter((line) => /^\| F\d+ \|/.test(line));
const numberOf = (row: string) => /^\| (F\d+)/.exec(row)?.[1] ?? "";
/** A test that the page names: its file, and a part of its name. */
const NAMED = /`([a-z-]+(?:\/[a-z-]+)*(?:\.test)?\.ts)` "([^"]+)"/g;

test("every fault has one row, in order, and every row names a test", () => {
  const numbers = rows.map((row) => Number(numberOf(row).slice(1)));
  expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
  expect(numbers.length).toBeGreaterThan(60);
  expect(rows.filter((row) => row.match(NAMED) === null).map(numberOf)).toEqual([]);
});

test("every fault that the name of a test has is a row", () => {
  const known = new Set(rows.map(numberOf));
  const unknown = globSync("**/*.ts", { cwd: tests }).flatMap((file) =>
    [...readFileSync(path.join(tests, file), "utf8").matchAll(/"[^"\n]*\bF\d{1,2}\b[^"\n]*"/g)]
      .flatMap(([name]) => name.match(/\bF\d{1,2}\b/g) ?? [])
      .filter((number) => !known.has(number))
      .map((number) => `${file}: ${number}`),
  );
  expect(unknown).toEqual([]);
});

test("every test that the page names exists under that name", () => {
  const named = [...page.matchAll(NAMED)];
  expect(named.length).toBeGreaterThan(80);
  const wrong = named.filter(([, file = "", name = ""]) => {
    const place = path.join(tests, file);
    return !existsSync(place) || !readFileSync(place, "utf8").includes(name);
  });
  expect(wrong.map(([text]) => text)).toEqual([]);
});
