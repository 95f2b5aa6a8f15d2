import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readAhead } from "#lib/waiting.ts";

const unhandled: unknown[] = [];
const note = (reason: unknown) => void unhandled.push(reason);

beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note);
});

afterEach(async () => {
  // Node reports an unhandled rejection after the microtasks of the turn in which it happened.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

interface Watched {
  readonly asked: number[];
  isClosed: boolean;
}

/** Yields 0 .. count-1, then ends or fails; records the requested items and whether it was closed. */
async function* numbers(
  count: number,
  watched: Watched,
  failure?: Error,
): AsyncGenerator<number, void, undefined> {
  try {
    for (let n = 0; n < count; n++) {
      watched.asked.push(n);
      await Promise.resolve();
      yield n;
    }
    watched.asked.push(count);
    if (failure !== undefined) throw failure;
  } finally {
    watched.isClosed = true;
  }
}

const watch = (): Watched => ({ asked: [], isClosed: false });

test("it yields what the source yields, in order, and ends when the source does", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(12), async (count) => {
      const watched = watch();
      const seen: number[] = [];
      for await (const n of readAhead(numbers(count, watched))) seen.push(n);
      expect(seen).toEqual(Array.from({ length: count }, (_, n) => n));
      expect(watched.isClosed).toBe(true);
    }),
  );
});

test("while the caller works on one value exactly the next one is asked for", async () => {
  const watched = watch();
  for await (const n of readAhead(numbers(5, watched))) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(watched.asked).toEqual(Array.from({ length: n + 2 }, (_, index) => index));
  }
});

test("a failure comes after every value before it, not sooner", async () => {
  const seen: number[] = [];
  const reading = (async () => {
    for await (const n of readAhead(numbers(3, watch(), new Error("the platform is gone")))) {
      seen.push(n);
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  await expect(reading).rejects.toThrow("the platform is gone");
  expect(seen).toEqual([0, 1, 2]);
});

test("a caller that stops closes the source, and a failure it never asked about goes nowhere", async () => {
  const watched = watch();
  for await (const n of readAhead(numbers(1, watched, new Error("of no interest")))) {
    expect(n).toBe(0);
    break;
  }
  expect(watched.isClosed).toBe(true);
});

test("a caller that fails gets its own failure, not the one the source had meanwhile", async () => {
  const watched = watch();
  const reading = (async () => {
    for await (const _n of readAhead(numbers(1, watched, new Error("the source's")))) {
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error("the caller's");
    }
  })();
  await expect(reading).rejects.toThrow("the caller's");
  expect(watched.isClosed).toBe(true);
});

test("a reader that is never asked asks for nothing", async () => {
  const watched = watch();
  const reader = readAhead(numbers(3, watched));
  await reader.return();
  expect(watched.asked).toEqual([]);
});
