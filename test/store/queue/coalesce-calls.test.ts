import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { coalesceCalls } from "#store/queue/define-job.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("many calls become one, a while after the first", () => {
  const fn = vi.fn();
  const enqueue = coalesceCalls(fn, 500);
  enqueue();
  vi.advanceTimersByTime(400);
  enqueue();
  vi.advanceTimersByTime(99);
  expect(fn).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(fn).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(10_000);
  expect(fn).toHaveBeenCalledTimes(1);
});

test("calls that never pause do not put it off", () => {
  const fn = vi.fn();
  const enqueue = coalesceCalls(fn, 500);
  for (let call = 0; call < 100; call += 1) {
    enqueue();
    vi.advanceTimersByTime(100);
  }
  expect(fn.mock.calls.length).toBeGreaterThan(15);
});

test("a call from within the function runs it again", () => {
  let runs = 0;
  const enqueue = coalesceCalls(() => {
    runs += 1;
    if (runs === 1) enqueue();
  }, 500);
  enqueue();
  vi.advanceTimersByTime(1_000);
  expect(runs).toBe(2);
});

test("a rejected call causes no unhandled rejection", async () => {
  vi.useRealTimers();
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  const ended = Promise.withResolvers<void>();
  coalesceCalls(() => {
    ended.resolve();
    return Promise.reject(new Error("no queue"));
  }, 1)();
  await ended.promise;
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test("a call that throws at once ends nothing", () => {
  const enqueue = coalesceCalls(() => {
    throw new Error("no queue");
  }, 500);
  enqueue();
  expect(() => vi.advanceTimersByTime(500)).not.toThrow();
});
