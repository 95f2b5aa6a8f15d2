import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "..", "..", "..");
const page = readFileSync(path.join(ROOT, "SECURITY.md"), "utf8");
const rows = page.split("\n").filter((line) => /^\| S\d+ \|/.test(line));

test("every item of the security list is there, done or with what is not", () => {
  const numbers = rows.map((row) => Number(/^\| S(\d+)/.exec(row)?.[1]));
  expect(numbers).toEqual(Array.from({ length: 26 }, (_, index) => index + 1));
  const silent = rows.filter((row) => !/\.test\.ts|src\/|Not done/.test(row));
  expect(silent).toEqual([]);
});

test("every test that the page names exists under that name", () => {
  const named = [...page.matchAll(/`([a-z-]+(?:\/[a-z-]+)*(?:\.test)?\.ts)` "([^"]+)"/g)];
  expect(named.length).toBeGreaterThan(50);
  const wrong = named.filter(([, file = "", name = ""]) => {
    const place = path.join(ROOT, "test", file);
    return !existsSync(place) || !readFileSync(place, "utf8").includes(name);
  });
  expect(wrong.map(([text]) => text)).toEqual([]);
});

test("every file that the page names exists", () => {
  const named = [...page.matchAll(/`((?:src|db)\/[\w/.-]+)`/g)].map(([, file = ""]) => file);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([]);
});
