import { expect, test } from "vitest";
import { createStopStack } from "#lib/process.ts";

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

test("a part that never stops is reported and left behind, and the parts after it still get time to stop", async () => {
  const calls: string[] = [];
  const stack = createStopStack((name, error) => calls.push(`${name}: ${error.message}`), undefined, 400);
  stack.defer("first", () => calls.push("first"));
  stack.defer("second", () => new Promise(() => {}));
  stack.defer("third", () => new Promise(() => {}));
  await stack.stop();

  expect(calls).toEqual([
    expect.stringMatching(/^third: not stopped in (200|199) ms$/),
    expect.stringMatching(/^second: not stopped in \d{1,3} ms$/),
    "first",
  ]);
});
