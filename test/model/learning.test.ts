import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import { describeLearning, isLearning, learningUntil } from "#model/rules.ts";

const FIRST = Date.UTC(2026, 10, 29, 14, 0) / MINUTE_MS;

test("a zone learns for a day from the minute of its first event on", () => {
  expect(learningUntil(null)).toBeNull();
  expect(describeLearning((learningUntil(FIRST) ?? 0) * MINUTE_MS)).toBe(
    "learning until Monday 14:00 UTC: only attacks over the fixed lines notify",
  );
  expect([0, 1_439, 1_440].map((after) => isLearning(FIRST, FIRST + after))).toEqual([true, true, false]);
  expect(isLearning(null, FIRST)).toBe(true);
});
