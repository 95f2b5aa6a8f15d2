import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createCostlyGate } from "../../src/http/limits/costly-gate.ts";

const { signal: never } = new AbortController();
const OPTIONS = { places: 2, perKey: 4, waiting: 6, maxWaitMs: 15_000 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A gate, and the names of those that were let in, in order; each is ended by its name. */
function openGate(options: Partial<typeof OPTIONS> = {}) {
  const gate = createCostlyGate({ ...OPTIONS, ...options });
  const entered: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (name: string, { isBusy = false, signal = never } = {}) =>
    gate.enter(name.replace(/\d+$/, ""), isBusy, signal).then(({ leave }) => {
      entered.push(name);
      ends.set(name, leave);
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    await vi.advanceTimersByTimeAsync(0);
  };
  const askAll = async (names: readonly string[], more: { isBusy?: boolean } = {}) => {
    for (const name of names) void ask(name, more);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { gate, entered, ask, askAll, end };
}

test("one key leaves a place to others, however much it asks", async () => {
  const { entered, askAll } = openGate();
  await askAll(["a1", "a2", "a3"]);
  expect(entered).toEqual(["a1"]);
  await askAll(["b1"]);

  expect(entered).toEqual(["a1", "b1"]);
});

test("while ingest is at work one runs at a time, of whichever key", async () => {
  const { gate, entered, askAll, end } = openGate();
  await askAll(["a1", "b1", "c1"], { isBusy: true });
  expect(entered).toEqual(["a1"]);
  await end("a1");
  expect(entered).toEqual(["a1", "b1"]);

  // The newest word holds for all.
  await askAll(["d1"], { isBusy: false });
  expect(entered).toEqual(["a1", "b1", "c1"]);
  expect(gate.counts()).toEqual({ working: 2, waiting: 1 });
});

test("turns go round among the keys: one with many questions delays another's by one of them", async () => {
  const { entered, askAll, end } = openGate({ places: 1 });
  await askAll(["a1", "a2", "a3", "a4"]);
  await askAll(["b1", "b2"]);
  for (let n = 0; n < 5; n++) await end(entered.at(-1) ?? "");

  expect(entered).toEqual(["a1", "b1", "a2", "b2", "a3", "a4"]);
});

test("a key with as many as it may have is told so, and others are not", async () => {
  const { ask, askAll } = openGate();
  await askAll(["a1", "a2", "a3", "a4"]);

  await expect(ask("a5")).rejects.toMatchObject({
    statusCode: 429,
    slug: "too-many-at-once",
    headers: { "retry-after": "1" },
  });
  await ask("b1");
});

test("more than may wait are sent away", async () => {
  const { ask, askAll } = openGate({ places: 1, waiting: 2 });
  await askAll(["a1", "b1", "c1"]);

  await expect(ask("d1")).rejects.toMatchObject({ statusCode: 503, headers: { "retry-after": "5" } });
});

test("who has waited too long is sent away and keeps no place in line", async () => {
  const { gate, entered, ask, askAll, end } = openGate({ places: 1 });
  await askAll(["a1"]);
  const late = ask("b1").catch((thrown: unknown) => thrown);
  await vi.advanceTimersByTimeAsync(14_999);
  expect(gate.counts()).toEqual({ working: 1, waiting: 1 });
  await vi.advanceTimersByTimeAsync(1);
  expect(await late).toMatchObject({ statusCode: 503, slug: "busy" });
  await askAll(["c1"]);
  await end("a1");

  expect(entered).toEqual(["a1", "c1"]);
});

test("who hangs up in line leaves it; who had hung up before never joins", async () => {
  const { gate, ask, askAll, end } = openGate({ places: 1 });
  await askAll(["a1"]);
  const leaving = new AbortController();
  const gone = ask("b1", { signal: leaving.signal }).catch(String);
  leaving.abort(new Error("gone"));
  expect(await gone).toBe("Error: gone");
  await expect(ask("b1", { signal: leaving.signal })).rejects.toThrow("gone");
  await end("a1");

  expect(gate.counts()).toEqual({ working: 0, waiting: 0 });
  expect(vi.getTimerCount()).toBe(0);
});

test("a place that is given back twice is one place", async () => {
  const { entered, askAll, end } = openGate({ places: 1 });
  await askAll(["a1", "b1", "c1"]);
  await end("a1");
  await end("a1");

  expect(entered).toEqual(["a1", "b1"]);
});

test("whatever comes in whatever order: never more at once than places, and everybody in line has a turn", async () => {
  const steps = fc.array(
    fc.record({ key: fc.constantFrom("a", "b", "c"), isBusy: fc.boolean(), ends: fc.nat(2) }),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), async (given, places) => {
      const { gate, entered, ask, end } = openGate({ places });
      const refused: string[] = [];
      const working: string[] = [];
      const settle = async () => {
        await vi.advanceTimersByTimeAsync(0);
        for (const name of entered) if (!seen.has(name)) working.push(name);
        for (const name of entered) seen.add(name);
        expect(gate.counts().working).toBe(working.length);
        expect(working.length).toBeLessThanOrEqual(places);
      };
      const seen = new Set<string>();
      for (const [index, { key, isBusy, ends }] of given.entries()) {
        const name = `${key}${index}`;
        void ask(name, { isBusy }).catch(() => refused.push(name));
        await settle();
        for (let n = 0; n < ends; n++) await end(working.shift() ?? "nobody").then(settle);
      }
      while (working.length > 0) await end(working.shift() ?? "nobody").then(settle);
      expect(gate.counts()).toEqual({ working: 0, waiting: 0 });
      expect(entered.length + refused.length).toBe(given.length);
    }),
    { numRuns: 50 },
  );
});

test("keys that ask again as soon as they are answered do not keep one with several in line from its turns", async () => {
  const gate = createCostlyGate({ places: 1, perKey: 10, waiting: 20, maxWaitMs: 600_000 });
  const never = new AbortController().signal;
  let order = "";
  const ask = async (keyId: string) => {
    const { leave } = await gate.enter(keyId, true, never);
    order += keyId;
    await Promise.resolve();
    leave();
  };
  const askAgain = async (keyId: string) => {
    for (let turn = 0; turn < 10; turn++) await ask(keyId);
  };
  await Promise.all([askAgain("B"), askAgain("C"), ask("A"), ask("A"), ask("A")]);
  expect(order.lastIndexOf("A")).toBeLessThan(10);
});
