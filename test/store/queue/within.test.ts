import { expect, test } from "vitest";
import { within } from "#lib/waiting.ts";

test("work that ends in time is done, and other work is late", async () => {
  expect(await within(Promise.resolve("anything"), 60_000)).toBe("done");
  expect(await within(new Promise(() => {}), 1)).toBe("late");
});

test("a failure in time is the caller's; one that comes late ends nothing", async () => {
  await expect(within(Promise.reject(new Error("no")), 60_000)).rejects.toThrow("no");
  const { promise, reject } = Promise.withResolvers<void>();
  expect(await within(promise, 1)).toBe("late");
  reject(new Error("too late"));
  await expect(promise).rejects.toThrow("too late");
});
