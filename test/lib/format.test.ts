import { expect, test } from "vitest";
import { formatDecimal, formatHours, formatNumber, formatShare, formatWhole, many } from "#lib/format.ts";

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

test("a share that would round to nothing is <1 %, and none is 0 %", () => {
  expect([0, 0.0001, 0.0049, 0.005, 0.4, 1].map(formatShare)).toEqual([
    "0 %",
    "<1 %",
    "<1 %",
    "1 %",
    "40 %",
    "100 %",
  ]);
});

test("less than an hour is named in minutes", () => {
  expect([0, 0.4, 0.99, 1, 1.05, 23.96].map(formatHours)).toEqual([
    "0 minutes",
    "24 minutes",
    "59 minutes",
    "1 hour",
    "1 hour",
    "23.9 hours",
  ]);
});
