import fc from "fast-check";
import { expect, test } from "vitest";
import { DeliveryError } from "#delivery/receivers/delivery-error.ts";
import { splitBatch } from "#delivery/receivers/sinks/sink.ts";

const busy = () => new DeliveryError({ code: "ENDPOINT_BUSY", disposition: "wait", text: "busy", waitMs: 9 });

/** What becomes of an event, and of the first requests. */
const event = fc.record({
  size: fc.integer({ min: 1, max: 60 }),
  fate: fc.constantFrom("good", "good", "good", "good", "bad", "later"),
});
const requestFate = fc.constantFrom("answer", "answer", "answer", "fail");

test("every event is acknowledged, refused or postponed exactly once, whatever the receiver does", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 40 }),
      fc.array(requestFate, { maxLength: 12 }),
      fc.constantFrom("items", "named", "unknown"),
      async (events, fates, how) => {
        const stored = new Set<number>();
        let request = 0;
        let failed = false;
        let largest = 0;
        const answer = await splitBatch({
          sizes: events.map(({ size }) => size),
          maxBytes: 50,
          async send(positions) {
            largest = Math.max(
              largest,
              positions.reduce((sum, position) => sum + (events[position]?.size ?? 0), 0),
            );
            if (fates[request++] === "fail") {
              failed = true;
              throw busy();
            }
            const indexOf = (fate: string) =>
              positions.flatMap((position, index) => (events[position]?.fate === fate ? [index] : []));
            const bad = indexOf("bad");
            const later = indexOf("later");
            if (how !== "items" && bad.length > 0)
              return {
                is: "refused",
                reason: "bad",
                ...(how === "unknown" ? {} : { indexes: bad.slice(0, 2) }),
              };
            for (const [index, position] of positions.entries())
              if (!bad.includes(index) && !later.includes(index)) stored.add(position);
            return {
              is: "stored",
              refused: bad.map((index) => ({ index, reason: "bad" })),
              postponed: later,
            };
          },
        }).catch((thrown: unknown) =>
          thrown instanceof DeliveryError ? null : Promise.reject(thrown as Error),
        );
        expect(largest).toBeLessThanOrEqual(50);
        expect(answer !== null || stored.size === 0).toBe(true);
        const { refused = [], postponed = [], waitMs = 9 } = answer ?? {};
        const named = [...refused.map(({ index }) => index), ...postponed];
        expect(new Set(named).size).toBe(named.length);
        const wrong = events.flatMap(({ size, fate }, position) => {
          const isRight =
            answer === null ||
            (refused.some(({ index }) => index === position)
              ? size > 50 || fate === "bad"
              : postponed.includes(position)
                ? fate === "later" || failed
                : stored.has(position));
          return isRight ? [] : [position];
        });
        expect(wrong).toEqual([]);
        expect(!failed || waitMs === 9).toBe(true);
      },
    ),
  );
});

test("one refused event among 5,000 is found with at most 30 requests", async () => {
  let requests = 0;
  const { refused } = await splitBatch({
    sizes: Array.from({ length: 5_000 }, () => 1),
    maxBytes: 10_000,
    async send(positions) {
      requests += 1;
      return positions.includes(3_210) ? { is: "refused", reason: "bad" } : { is: "stored" };
    },
  });
  expect(refused).toEqual([{ index: 3_210, reason: "bad" }]);
  expect(requests).toBeLessThanOrEqual(30);
});

test("an empty batch sends nothing", async () => {
  const send = () => Promise.reject(new Error("sent"));
  expect(await splitBatch({ sizes: [], maxBytes: 1, send })).toEqual({
    refused: [],
    postponed: [],
    waitMs: null,
  });
});

test("after 100 requests the events that are not judged yet are postponed, if any was acknowledged", async () => {
  let requests = 0;
  const answer = await splitBatch({
    sizes: Array.from({ length: 500 }, () => 1),
    maxBytes: 1_000,
    async send(positions) {
      requests += 1;
      return positions.some((position) => position > 0) ? { is: "refused", reason: "bad" } : { is: "stored" };
    },
  });
  expect(requests).toBe(100);
  expect(answer.refused.length).toBeGreaterThan(20);
  expect(answer.refused.length + answer.postponed.length).toBe(499);
});
