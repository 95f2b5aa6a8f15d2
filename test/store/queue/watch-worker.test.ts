import { expect, test } from "vitest";
import { createWorkerWatch } from "#store/queue/job-queue.ts";

/** A watch over numbers that the test sets. */
function watchOver(facts: { begun: number; running: number; waiting: number }) {
  let stops = 0;
  const look = createWorkerWatch({
    read: () => ({ begun: facts.begun, running: facts.running }),
    countWaiting: async () => facts.waiting,
    onStopped: () => (stops += 1),
  });
  return { look, stops: () => stops };
}

test("jobs that wait while the worker begins none mean that it has stopped, at the second look", async () => {
  const { look, stops } = watchOver({ begun: 3, running: 0, waiting: 1 });
  await look();
  expect(stops()).toBe(0);
  await look();
  expect(stops()).toBe(1);
});

test("the worker that took its place is given its two looks as well", async () => {
  const { look, stops } = watchOver({ begun: 3, running: 0, waiting: 1 });
  for (let turn = 0; turn < 3; turn += 1) await look();
  expect(stops()).toBe(1);
});

test.each([
  ["begins jobs in between", { begun: 1 }],
  ["is busy", { running: 1 }],
  ["has nothing to do", { waiting: 0 }],
])("a worker that %s has not stopped", async (_what, change) => {
  const facts = { begun: 0, running: 0, waiting: 5 };
  const { look, stops } = watchOver(facts);
  await look();
  Object.assign(facts, change);
  await look();
  expect(stops()).toBe(0);
});
