import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openAdmissionQueue } from "#app/list-routes.ts";
import type { SearchWork } from "#archive/search/searching.ts";
import { createAdmissionQueue, type Place } from "#faces/http/limits/admission-queue.ts";

const { signal: never } = new AbortController();
const OPTIONS = {
  places: { quick: 2, long: 2 },
  perKey: { quick: 8, long: 4 },
  maxWaitMs: 15_000,
  cpuMsPerMinute: 60_000,
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Opens a queue and lists the names of the admitted requests, in order. `end` ends a request by its name. */
function openQueue(options: Partial<typeof OPTIONS> = {}) {
  const queue = createAdmissionQueue({ ...OPTIONS, ...options });
  const entered: string[] = [];
  const places = new Map<string, Place>();
  const ask = (name: string, work: Partial<SearchWork> = {}) =>
    queue.enter(name.replace(/\d+$/, ""), { kind: "long", signal: never, ...work }).then((place) => {
      entered.push(name);
      places.set(name, place);
    });
  const end = async (name: string, cpuMs = 0) => {
    places.get(name)?.begin()(cpuMs);
    places.get(name)?.leave();
    await vi.advanceTimersByTimeAsync(0);
  };
  const askAll = async (names: readonly string[], more: Partial<SearchWork> = {}) => {
    for (const name of names) void ask(name, more).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { queue, entered, places, ask, askAll, end };
}

test.each([2, 3, 5])("one key gets all of %i places but the last, whatever it sends", async (places) => {
  const { entered, askAll } = openQueue({
    places: { quick: places, long: places },
    perKey: { quick: 20, long: 20 },
  });
  const names = Array.from({ length: 12 }, (_, index) => `a${index}`);
  await askAll(names);
  await askAll(names, { kind: "quick" });
  expect(entered).toHaveLength(2 * (places - 1));
  await askAll(["b1"]);
  await askAll(["b2"], { kind: "quick" });

  expect(entered.slice(-2)).toEqual(["b1", "b2"]);
});

test("with one place asked for there still are two, so that one key cannot lock out others", async () => {
  const { entered, askAll } = openQueue({ places: { quick: 1, long: 1 } });
  await askAll(["a1", "a2", "b1"]);

  expect(entered).toEqual(["a1", "b1"]);
});

test("a place is free when its holder has left and its last statement has ended", async () => {
  const { queue, entered, places, askAll, end } = openQueue();
  await askAll(["a1", "a2"]);
  const endOne = places.get("a1")?.begin();
  const endOther = places.get("a1")?.begin();
  await end("a1");
  endOne?.(1);
  endOne?.(1);
  await end("a1");
  expect([entered, queue.counts()]).toEqual([["a1"], { working: 1, waiting: 1 }]);
  endOther?.(1);
  await vi.advanceTimersByTimeAsync(0);

  expect(entered).toEqual(["a1", "a2"]);
});

test("a key that has used its CPU time gets 429 with the time to wait, and other keys do not", async () => {
  const { entered, ask, askAll, end } = openQueue({ cpuMsPerMinute: 20_000 });
  await askAll(["a1", "a2"]);
  await askAll(["a3"], { kind: "quick" });
  await vi.advanceTimersByTimeAsync(10_000);
  await end("a1", 20_000);
  await end("a2");
  await end("a3", 10_000);
  // 30 of 20 seconds are used, and a second of it comes back in three. Time without work does not count.
  for (const kind of ["quick", "long"] as const)
    await expect(ask("a4", { kind })).rejects.toMatchObject({
      statusCode: 429,
      slug: "cpu-time-used",
      headers: { "retry-after": "30" },
    });
  await ask("b1");
  await vi.advanceTimersByTimeAsync(30_000);
  await ask("a5");

  expect(entered).toEqual(["a1", "a3", "a2", "b1", "a5"]);
});

test("the CPU time that a search is expected to use in Postgres counts when it leaves", async () => {
  const { ask, askAll, end } = openQueue({ cpuMsPerMinute: 20_000 });
  await askAll(["a1"], { postgresMs: 28_000 });
  await ask("a2", { kind: "quick" });
  await end("a1");

  await expect(ask("a3")).rejects.toMatchObject({ headers: { "retry-after": "24" } });
});

test("the next part of an export waits until the key has CPU time again, and is not refused", async () => {
  const { entered, ask, askAll, end } = openQueue({ cpuMsPerMinute: 20_000 });
  await askAll(["a1"]);
  await end("a1", 30_000);
  await askAll(["a2"], { isPatient: true });
  const leaving = new AbortController();
  const gone = ask("a3", { isPatient: true, signal: leaving.signal }).catch(String);
  leaving.abort(new Error("gone"));
  expect(await gone).toBe("Error: gone");
  expect(entered).toEqual(["a1"]);
  await vi.advanceTimersByTimeAsync(30_001);

  expect(entered).toEqual(["a1", "a2"]);
});

test("the next part of an export waits longer than a search, and beside as many requests as a key may have", async () => {
  const { entered, askAll, end } = openQueue({ cpuMsPerMinute: 600_000 });
  await askAll(["a1", "a2", "a3", "a4"]);
  await askAll(["a5"], { isPatient: true });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(entered).toEqual(["a1"]);
  await end("a1");

  expect(entered).toEqual(["a1", "a5"]);
});

test("keys take turns: a key with many searches delays another key's search by one search", async () => {
  const { entered, askAll, end } = openQueue();
  await askAll(["c1", "a1", "a2", "a3", "a4"]);
  await askAll(["b1", "b2"]);
  await end("a1");
  for (let n = 0; n < 5; n++) await end(entered.at(-1) ?? "");

  expect(entered).toEqual(["c1", "a1", "b1", "a2", "b2", "a3", "a4"]);
});

test("a key with too many searches gets 429, and other keys do not", async () => {
  const { ask, askAll } = openQueue();
  await askAll(["a1", "a2", "a3", "a4"]);

  await expect(ask("a5")).rejects.toMatchObject({
    statusCode: 429,
    slug: "too-many-at-once",
    headers: { "retry-after": "1" },
  });
  await ask("a6", { kind: "quick" });
  await ask("b1");
});

test("the searches of four tabs of one person wait for their turn, and further ones get 429", async () => {
  const queue = openAdmissionQueue({ pool: { options: { max: 6 } } } as never);
  const search = () => queue.enter("person", { kind: "long", signal: never });
  for (let n = 0; n < 12; n++) void search().catch(() => undefined);
  expect(queue.counts()).toEqual({ working: 1, waiting: 11 });

  await expect(search()).rejects.toMatchObject({ statusCode: 429, headers: { "retry-after": "1" } });
});

test("a search that has waited too long gets 503 and leaves the queue", async () => {
  const { queue, entered, ask, askAll, end } = openQueue();
  await askAll(["a1", "d1"]);
  const late = ask("b1").catch((thrown: unknown) => thrown);
  await vi.advanceTimersByTimeAsync(14_999);
  expect(queue.counts()).toEqual({ working: 2, waiting: 1 });
  await vi.advanceTimersByTimeAsync(1);
  expect(await late).toMatchObject({ statusCode: 503, slug: "busy", headers: { "retry-after": "5" } });
  await askAll(["c1"]);
  await end("a1");

  expect(entered).toEqual(["a1", "d1", "c1"]);
});

test("an aborted search leaves the queue; a search aborted earlier never joins it", async () => {
  const { queue, ask, askAll, end } = openQueue();
  await askAll(["a1", "c1"]);
  const leaving = new AbortController();
  // Connections that another file has left open may set a timer at any other time.
  const before = vi.getTimerCount();
  const gone = ask("b1", { signal: leaving.signal }).catch(String);
  expect(vi.getTimerCount()).toBe(before + 1);
  leaving.abort(new Error("gone"));
  expect(vi.getTimerCount()).toBe(before);
  expect(await gone).toBe("Error: gone");
  await expect(ask("b1", { signal: leaving.signal })).rejects.toThrow("gone");
  await end("a1");
  await end("c1");

  expect(queue.counts()).toEqual({ working: 0, waiting: 0 });
});

test("leaving twice gives one place back", async () => {
  const { entered, askAll, end } = openQueue();
  await askAll(["a1", "d1", "b1", "c1"]);
  await end("a1");
  await end("a1");

  expect(entered).toEqual(["a1", "d1", "b1"]);
});

test("for random sequences, no more searches than places run at once, and every waiting search runs", async () => {
  const steps = fc.array(fc.record({ key: fc.constantFrom("a", "b", "c"), ends: fc.nat(2) }), {
    maxLength: 40,
  });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 2, max: 4 }), async (given, places) => {
      const { queue, entered, ask, end } = openQueue({ places: { quick: 2, long: places } });
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
      for (const [index, { key, ends }] of given.entries()) {
        const name = `${key}${index}`;
        void ask(name).catch(() => refused.push(name));
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
  const { queue } = openQueue({ perKey: { quick: 10, long: 10 } });
  let order = "";
  const ask = async (keyId: string) => {
    const { leave } = await queue.enter(keyId, { kind: "long", signal: never });
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
