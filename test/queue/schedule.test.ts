import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createSchedule, type ScheduleEntry } from "#adapters/queue/schedule.ts";

const MIDNIGHT = Date.UTC(2026, 10, 21);
const never = () => new Promise<never>(() => {});

beforeEach(() => {
  vi.useFakeTimers({ now: MIDNIGHT + 500 });
});

afterEach(() => {
  vi.useRealTimers();
});

/** An entry that is always due unless told otherwise, and its schedule, started. */
function start(entry: Partial<ScheduleEntry> = {}) {
  const asked: number[] = [];
  const enqueued: number[] = [];
  const errors: string[] = [];
  const schedule = createSchedule({
    entries: [
      {
        name: "poll-events",
        everyMs: 30_000,
        async isDue() {
          asked.push(Date.now() - MIDNIGHT);
          return (await entry.isDue?.()) ?? true;
        },
        async enqueue() {
          enqueued.push(Date.now() - MIDNIGHT);
          return (await entry.enqueue?.()) ?? true;
        },
        ...(entry.everyMs === undefined ? {} : { everyMs: entry.everyMs }),
        ...(entry.offsetMs === undefined ? {} : { offsetMs: entry.offsetMs }),
      },
    ],
    onError: (name, error) => errors.push(`${name}: ${error.message}`),
  });
  onTestFinished(() => schedule.stop(0));
  schedule.start();
  return { asked, enqueued, errors, schedule };
}

test("rings at the start and then once per period, at its beginning in UTC", async () => {
  const { enqueued } = start();
  await vi.advanceTimersByTimeAsync(65_000);

  expect(enqueued).toEqual([500, 30_000, 60_000]);
});

test("a period that no cron pattern can say is kept as well", async () => {
  const { enqueued } = start({ everyMs: 45_000 });
  await vi.advanceTimersByTimeAsync(140_000);

  expect(enqueued).toEqual([500, 45_000, 90_000, 135_000]);
});

test("an offset moves the beginning of every period", async () => {
  const { enqueued } = start({ offsetMs: 12_000 });
  await vi.advanceTimersByTimeAsync(80_000);

  expect(enqueued).toEqual([500, 12_000, 42_000, 72_000]);
});

test("what is not due is not rung, and is asked for again within the period", async () => {
  const { asked, enqueued } = start({ isDue: async () => Date.now() - MIDNIGHT >= 12_000 });
  await vi.advanceTimersByTimeAsync(25_000);

  expect(enqueued).toEqual([15_500]);
  expect(asked).toEqual([500, 8_000, 15_500]);
});

test("a daily entry that another replica took is asked for every minute, not every second", async () => {
  const { asked } = start({ everyMs: 86_400_000, isDue: async () => false });
  await vi.advanceTimersByTimeAsync(600_000);

  expect(asked).toHaveLength(11);
});

test("F7: a tick that a blocked event loop missed is made up for by the next one", async () => {
  vi.useRealTimers();
  const { enqueued } = start({ everyMs: 2_000 });
  await vi.waitFor(() => expect(enqueued).not.toHaveLength(0));
  const before = enqueued.length;
  // Longer than node-cron tolerates: it drops the run.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_200);

  await vi.waitFor(() => expect(enqueued.length).toBeGreaterThan(before), { timeout: 10_000 });
});

test("F8: a clock that is set back does not silence an entry", async () => {
  const { enqueued } = start();
  await vi.advanceTimersByTimeAsync(30_000);
  vi.setSystemTime(MIDNIGHT - 600_000);
  const before = enqueued.length;
  await vi.advanceTimersByTimeAsync(10_000);

  expect(enqueued.length).toBe(before + 1);
});

test("a run that is still going on is not started a second time", async () => {
  const { asked } = start({ isDue: never });
  await vi.advanceTimersByTimeAsync(29_000);

  expect(asked).toHaveLength(1);
});

test("a run that never ends is given up after its period, said so, and the entry goes on", async () => {
  let runs = 0;
  const { enqueued, errors } = start({ isDue: async () => (++runs === 1 ? never() : true) });
  await vi.advanceTimersByTimeAsync(62_000);

  expect(errors).toEqual(["poll-events: took longer than 30000 ms"]);
  expect(enqueued).toEqual([30_500, 60_000]);
});

test("a daily entry's run is given up after a minute", async () => {
  let runs = 0;
  const { enqueued } = start({ everyMs: 86_400_000, isDue: async () => (++runs === 1 ? never() : true) });
  await vi.advanceTimersByTimeAsync(62_000);

  expect(enqueued).toHaveLength(1);
});

test("a period that was claimed but whose ring nobody heard is rung again without asking", async () => {
  let enqueues = 0;
  const { asked, enqueued } = start({ enqueue: async () => ++enqueues > 2 });
  await vi.advanceTimersByTimeAsync(29_000);

  expect(asked).toHaveLength(1);
  expect(enqueued).toEqual([500, 8_000, 15_500]);
});

test("an error of the database or the queue is told with the entry's name, and the entry goes on", async () => {
  let asks = 0;
  const { enqueued, errors } = start({
    isDue: async () => {
      if (++asks === 1) throw new Error("no database");
      return true;
    },
  });
  await vi.advanceTimersByTimeAsync(10_000);

  expect(errors).toEqual(["poll-events: no database"]);
  expect(enqueued).toEqual([8_000]);
});

test("a stop lets a claimed period still ring, and then nothing rings any more", async () => {
  const claimed = Promise.withResolvers<boolean>();
  const { enqueued, schedule } = start({ isDue: () => claimed.promise });
  const stopped = schedule.stop();
  claimed.resolve(true);
  await stopped;
  await vi.advanceTimersByTimeAsync(120_000);

  expect(enqueued).toEqual([500]);
});

test("a stop does not wait for a run that hangs", async () => {
  const { schedule } = start({ isDue: never });
  const stopped = schedule.stop(1_000);
  await vi.advanceTimersByTimeAsync(1_000);

  await expect(stopped).resolves.toBeUndefined();
});
