import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createAdmissionQueue } from "../../src/http/limits/admission-queue.ts";

const { signal: never } = new AbortController();
const OPTIONS = { places: 2, perKey: 4, waiting: 6, maxWaitMs: 15_000 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Opens a queue and lists the names of the admitted searches, in order. `end` ends a search by its name. */
function openQueue(options: Partial<typeof OPTIONS> = {}) {
  const queue = createAdmissionQueue({ ...OPTIONS, ...options });
  const entered: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (name: string, { isBusy = false, signal = never } = {}) =>
    queue.enter(name.replace(/\d+$/, ""), isBusy, signal).then(({ leave }) => {
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
  return { queue, entered, ask, askAll, end };
}

test("one key never takes all places, however many searches it sends", async () => {
  const { entered, askAll } = openQueue();
  await askAll(["a1", "a2", "a3"]);
  expect(entered).toEqual(["a1"]);
  await askAll(["b1"]);

  expect(entered).toEqual(["a1", "b1"]);
});

test("while ingest is busy, one search of all keys runs at a time", async () => {
  const { queue, entered, askAll, end } = openQueue();
  await askAll(["a1", "b1", "c1"], { isBusy: true });
  expect(entered).toEqual(["a1"]);
  await end("a1");
  expect(entered).toEqual(["a1", "b1"]);

  // The latest `isBusy` applies to all keys.
  await askAll(["d1"], { isBusy: false });
  expect(entered).toEqual(["a1", "b1", "c1"]);
  expect(queue.counts()).toEqual({ working: 2, waiting: 1 });
});

test("keys take turns: a key with many searches delays another key's search by one search", async () => {
  const { entered, askAll, end } = openQueue({ places: 1 });
  await askAll(["a1", "a2", "a3", "a4"]);
  await askAll(["b1", "b2"]);
  for (let n = 0; n < 5; n++) await end(entered.at(-1) ?? "");

  expect(entered).toEqual(["a1", "b1", "a2", "b2", "a3", "a4"]);
});

test("a key with too many searches gets 429, and other keys do not", async () => {
  const { ask, askAll } = openQueue();
  await askAll(["a1", "a2", "a3", "a4"]);

  await expect(ask("a5")).rejects.toMatchObject({
    statusCode: 429,
    slug: "too-many-at-once",
    headers: { "retry-after": "1" },
  });
  await ask("b1");
});

test("a search gets 503 if too many are waiting", async () => {
  const { ask, askAll } = openQueue({ places: 1, waiting: 2 });
  await askAll(["a1", "b1", "c1"]);

  await expect(ask("d1")).rejects.toMatchObject({ statusCode: 503, headers: { "retry-after": "5" } });
});

test("a search that has waited too long gets 503 and leaves the queue", async () => {
  const { queue, entered, ask, askAll, end } = openQueue({ places: 1 });
  await askAll(["a1"]);
  const late = ask("b1").catch((thrown: unknown) => thrown);
  await vi.advanceTimersByTimeAsync(14_999);
  expect(queue.counts()).toEqual({ working: 1, waiting: 1 });
  await vi.advanceTimersByTimeAsync(1);
  expect(await late).toMatchObject({ statusCode: 503, slug: "busy" });
  await askAll(["c1"]);
  await end("a1");

  expect(entered).toEqual(["a1", "c1"]);
});

test("an aborted search leaves the queue; a search aborted earlier never joins it", async () => {
  const { queue, ask, askAll, end } = openQueue({ places: 1 });
  await askAll(["a1"]);
  const leaving = new AbortController();
  const gone = ask("b1", { signal: leaving.signal }).catch(String);
  leaving.abort(new Error("gone"));
  expect(await gone).toBe("Error: gone");
  await expect(ask("b1", { signal: leaving.signal })).rejects.toThrow("gone");
  await end("a1");

  expect(queue.counts()).toEqual({ working: 0, waiting: 0 });
  expect(vi.getTimerCount()).toBe(0);
});

test("leaving twice gives one place back", async () => {
  const { entered, askAll, end } = openQueue({ places: 1 });
  await askAll(["a1", "b1", "c1"]);
  await end("a1");
  await end("a1");

  expect(entered).toEqual(["a1", "b1"]);
});

test("for random sequences, no more searches than places run at once, and every waiting search runs", async () => {
  const steps = fc.array(
    fc.record({ key: fc.constantFrom("a", "b", "c"), isBusy: fc.boolean(), ends: fc.nat(2) }),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), async (given, places) => {
      const { queue, entered, ask, end } = openQueue({ places });
      const refused: string[] = [];
      const working: string[] = [];
      const settle = async () => {
        await vi.advanceTimersByTimeAsync(0);
        for (const name of entered) if (!seen.has(name)) working.push(name);
        for (const name of entered) seen.add(name);
        expect(queue.counts().working).toBe(working.length);
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
      expect(queue.counts()).toEqual({ working: 0, waiting: 0 });
      expect(entered.length + refused.length).toBe(given.length);
    }),
    { numRuns: 50 },
  );
});

test("keys that search again at once do not delay the turns of a key with several waiting searches", async () => {
  const queue = createAdmissionQueue({ places: 1, perKey: 10, waiting: 20, maxWaitMs: 600_000 });
  const never = new AbortController().signal;
  let order = "";
  const ask = async (keyId: string) => {
    const { leave } = await queue.enter(keyId, true, never);
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
