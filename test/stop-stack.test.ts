import { expect, test } from "vitest";
import { createStopStack } from "../src/stop-stack.ts";

test("teardown runs in reverse order, once, and one failure does not keep the rest running", async () => {
  const calls: string[] = [];
  const stack = createStopStack((name, error) => calls.push(`${name} failed: ${error.message}`));
  stack.defer("first", () => calls.push("first"));
  stack.defer("second", () => Promise.reject(new Error("broken")));
  stack.defer("third", async () => calls.push("third"));

  await Promise.all([stack.stop(), stack.stop()]);

  expect(calls).toEqual(["third", "second failed: broken", "first"]);
});
