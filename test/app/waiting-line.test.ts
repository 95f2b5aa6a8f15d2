import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createWaitingLine } from "#platform/budget/shared-gate.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("a low caller that has waited for its patience passes before normal callers that came later", async () => {
  const line = createWaitingLine(1_000);
  const { signal } = new AbortController();
  const passed: string[] = [];
  void line.join("low", signal).then(() => passed.push("low"));
  await vi.advanceTimersByTimeAsync(999);
  expect(line.head()).toBe("low");
  await vi.advanceTimersByTimeAsync(1);
  expect(line.head()).toBe("normal");
  void line.join("normal", signal).then(() => passed.push("normal"));
  expect(line.pass(1)).toBe(1);
  await vi.advanceTimersByTimeAsync(0);
  expect(passed).toEqual(["low"]);
});

test("a low caller that gives up after its patience leaves no place behind", async () => {
  const line = createWaitingLine(1_000);
  const stop = new AbortController();
  const waiting = line.join("low", stop.signal);
  await vi.advanceTimersByTimeAsync(1_000);
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  expect(line.head()).toBeNull();
});
