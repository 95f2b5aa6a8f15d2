import { expect, test } from "vitest";
import { oneAtATime } from "#store/queue/define-job.ts";

const { signal } = new AbortController();

test("runs never overlap, and calls during a run have exactly one more run after it", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const log: string[] = [];
  const run = oneAtATime(async (name: string) => {
    log.push(`${name} begins`);
    await gate;
    log.push(`${name} ends`);
  });
  const calls = ["first", "second", "third"].map((name) => run(name, signal));
  open();
  await Promise.all(calls);
  await run("later", signal);
  expect(log).toEqual([
    "first begins",
    "first ends",
    "second begins",
    "second ends",
    "later begins",
    "later ends",
  ]);
});

test("a run that fails rejects its own call only, and the waiting one runs", async () => {
  const log: string[] = [];
  const run = oneAtATime(async (name: string) => {
    log.push(name);
    await Promise.resolve();
    if (name === "first") throw new Error("failed");
  });
  const outcomes = await Promise.allSettled([run("first", signal), run("second", signal)]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect(log).toEqual(["first", "second"]);
});

test("a run that never ends holds up the others until its deadline only", async () => {
  const deadline = new AbortController();
  const log: string[] = [];
  const run = oneAtATime(async (name: string) => {
    log.push(name);
    if (name === "first") await new Promise(() => undefined);
  });
  void run("first", deadline.signal);
  const second = run("second", signal);
  expect(log).toEqual(["first"]);
  deadline.abort();
  await second;
  await run("third", signal);
  expect(log).toEqual(["first", "second", "third"]);
});
