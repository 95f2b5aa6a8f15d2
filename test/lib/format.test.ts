import { expect, test } from "vitest";
import { formatDecimal, formatNumber, formatWhole, many } from "../../src/lib/format.ts";

test("counts are grouped alike everywhere", () => {
  expect([0, 999, 1_000, 1_234_567.6].map(formatWhole)).toEqual(["0", "999", "1,000", "1,234,568"]);
});

test("only one is singular, and a plural without s is given", () => {
  expect([0, 1, 1_000].map((number) => many(number, "hour"))).toEqual(["0 hours", "1 hour", "1,000 hours"]);
  expect([1, 2].map((number) => many(number, "entry", "entries"))).toEqual(["1 entry", "2 entries"]);
});

test("a number above zero is never shown as zero", () => {
  const shown = ["0", "<0.001", "0.0046", "0.035", "0.5", "9.4"];
  const numbers = [0, 0.000_4, 0.004_6, 0.034_7, 0.5, 9.42];
  expect(numbers.map(formatDecimal)).toEqual(shown);
  expect(numbers.map(formatNumber)).toEqual(shown);
});
