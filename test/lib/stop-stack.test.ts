import { expect, test } from "vitest";
import { createStopStack } from "#lib/stop-stack.ts";

test("teardown runs in reverse order, once, and one failure does not keep the rest running", async () => {
  const calls: string[] = [];
  const stack = createStopStack((name, error) => calls.push(`${name} failed: ${error.message}`));
  stack.defer("first", () => calls.push("first"));
  stack.defer("second", () => Promise.reject(new Error("broken")));
  stack.defer("third", async () => calls.push("third"));

  await Promise.all([stack.stop(), stack.stop()]);

  expect(calls).toEqual(["third", "second failed: broken", "first"]);
});

test("the callback gets each part that stopped", async () => {
  const told: string[] = [];
  const stack = createStopStack(
    (name) => told.push(`${name} failed`),
    (name, ms) => told.push(`${name} ${typeof ms}`),
  );
  stack.defer("first", () => undefined);
  stack.defer("second", () => Promise.reject(new Error("broken")));
  await stack.stop();

  expect(told).toEqual(["second failed", "first number"]);
});
