import { expect, test } from "vitest";
import { readRecommendation, toFailedAdvice } from "#alerts/rules/advice/advice-status.ts";

test.each(["", "   \n", "\u200b\u0007", "\0", null])("%j is no recommendation", (recommendation) => {
  expect(readRecommendation({ success: true, recommendation })).toEqual({
    success: false,
    text: null,
    errorKey: "NO_RECOMMENDATION",
  });
});

test("an answer that only says it failed is a failure of the model", () => {
  expect(readRecommendation({ success: false, recommendation: null }).errorKey).toBe("MODEL_FAILED");
});

test("a text counts even if `success` is false", () => {
  expect(readRecommendation({ success: false, recommendation: "Keep it." })).toEqual({
    success: true,
    text: "Keep it.",
    errorKey: null,
  });
});

test("control characters stay for the channels to escape; what Postgres cannot hold goes", () => {
  const { text } = readRecommendation({ success: true, recommendation: "a\u001b[31m\u202eb\0c\ud800d" });
  expect(text).toBe("a\u001b[31m\u202ebc\ufffdd");
});

test("a text is cut after 20,000 code points, never inside one", () => {
  const at = readRecommendation({ success: true, recommendation: "😀".repeat(20_000) });
  expect(at.text).toBe("😀".repeat(20_000));
  const over = readRecommendation({ success: true, recommendation: `a${"😀".repeat(30_000)}` });
  expect(over.text).toBe(`a${"😀".repeat(19_999)}`);
});

test("a failure keeps the platform's key if the key says more, else the code and the wait", () => {
  const facts = { code: "EDGE_PLAN", errorKey: "limit_reached.ai_recommendation", waitMs: undefined };
  expect(toFailedAdvice(facts).errorKey).toBe("limit_reached.ai_recommendation");
  expect(toFailedAdvice({ ...facts, errorKey: null }).errorKey).toBe("EDGE_PLAN");
  expect(toFailedAdvice({ ...facts, code: "EDGE_RATE_LIMITED", waitMs: 1_234.5 }).errorKey).toBe(
    "EDGE_RATE_LIMITED.1235",
  );
  expect(toFailedAdvice({ ...facts, code: "EDGE_UNAVAILABLE" }).errorKey).toBe("EDGE_UNAVAILABLE");
});
