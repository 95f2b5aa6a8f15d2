import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const folder = import.meta.dirname;
const page = readFileSync(path.join(folder, "README.md"), "utf8");
const rows = page.split("\n").filter((line) => /^\| F\d+ \|/.test(line));

test("every row of the fault matrix is there, with a test or with a reason", () => {
  const numbers = rows.map((row) => Number(/^\| F(\d+)/.exec(row)?.[1]));
  const wanted = [range(1, 13), range(20, 28), range(30, 38), range(40, 56), range(60, 67)].flat();
  expect(numbers).toEqual(wanted);
});

test("every test that the page names exists under that name", () => {
  const named = [...page.matchAll(/`([a-z-]+(?:\/[a-z-]+)*\.test\.ts)` "([^"]+)"/g)];
  expect(named.length).toBeGreaterThan(80);
  const wrong = named.filter(([, file = "", name = ""]) => {
    const place = path.join(folder, "..", file);
    return !existsSync(place) || !readFileSync(place, "utf8").includes(name);
  });
  expect(wrong.map(([text]) => text)).toEqual([]);
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
