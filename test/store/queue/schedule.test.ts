import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createSchedule } from "#store/queue/schedule.ts";

const MIDNIGHT = Date.UTC(2026, 10, 21);
const never = () => new Promise<never>(() => {});
const sinceMidnight = (atMs: number) => (atMs - MIDNIGHT) / 1_000;

beforeEach(() => {
  vi.useFakeTimers({ now: MIDNIGHT + 500 });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Starts a schedule of one entry and records its runs: seconds after midnight when it ran, of its time and of the next. */
function start(expression = "*/30 * * * * *", run: () => Promise<void> = async () => undefined) {
  const ran: number[] = [];
  const times: [at: number, nextAt: number][] = [];
  const errors: string[] = [];
  const schedule = createSchedule({
    entries: [
      {
        name: "poll-events",
        expression,
        run({ at, nextAt }) {
          ran.push(sinceMidnight(Date.now()));
          times.push([sinceMidnight(at), sinceMidnight(nextAt)]);
          return run();
        },
      },
    ],
    onError: (name, error) => errors.push(`${name}: ${error.message}`),
  });
  onTestFinished(() => schedule.stop(0));
  schedule.start();
  return { ran, times, errors, schedule };
}

test("an entry runs at the start and then at the times of its expression, in UTC", async () => {
  const { times } = start();
  await vi.advanceTimersByTimeAsync(65_000);

  expect(times).toEqual([
    [0.5, 30],
    [30, 60],
    [60, 90],
  ]);
});

test("an entry runs at the hours of its expression", async () => {
  const { times } = start("0 15 2,14 * * *");
  await vi.advanceTimersByTimeAsync(24 * 3_600_000);

  expect(times.slice(1)).toEqual([
    [8_100, 51_300],
    [51_300, 94_500],
  ]);
});

test("F7: the last of the runs that a blocked event loop missed is made up for", async () => {
  vi.useRealTimers();
  const second = Math.ceil((Date.now() + 100) / 1_000) * 1_000;
  const missed = [second, second + 1_000];
  // The next regular run is a minute later.
  const { times } = start(`${missed.map((at) => new Date(at).getUTCSeconds()).join(",")} * * * * *`);
  // node-cron by itself makes up for a run that is less than two seconds late.
  const untilMs = second + 3_050 - Date.now();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, untilMs);

  await vi.waitFor(() => expect(times.length).toBeGreaterThan(1));
  expect(times.slice(1).map(([at]) => at)).toEqual(missed.slice(1).map(sinceMidnight));
});

test("F8: a clock that is set back does not silence an entry", async () => {
  const { ran } = start();
  await vi.advanceTimersByTimeAsync(30_000);
  vi.setSystemTime(MIDNIGHT - 600_000);
  await vi.advanceTimersByTimeAsync(10_000);
  const before = ran.length;
  await vi.advanceTimersByTimeAsync(30_000);

  expect(ran.length).toBe(before + 1);
});

test("F8: an entry whose time a clock that was set forward has passed runs within seconds", async () => {
  const { ran } = start("0 0 * * * *");
  await vi.advanceTimersByTimeAsync(20_000);
  vi.setSystemTime(MIDNIGHT + 2 * 3_600_000);
  await vi.advanceTimersByTimeAsync(5_000);

  expect(ran).toEqual([0.5, expect.closeTo(7_205, 0)]);
});

test("a run that hangs is not started a second time, is abandoned after the shortest pause, and reported", async () => {
  let runs = 0;
  const { ran, errors } = start("*/30 * * * * *", () => (++runs === 1 ? never() : Promise.resolve()));
  await vi.advanceTimersByTimeAsync(29_000);
  expect(ran).toEqual([0.5]);
  await vi.advanceTimersByTimeAsync(33_000);

  expect(errors).toEqual(["poll-events: took longer than 30000 ms"]);
  expect(ran).toEqual([0.5, 30.5, 60]);
});

test("a run of a daily entry is abandoned after a minute", async () => {
  let runs = 0;
  const { ran } = start("0 0 0 * * *", () => (++runs === 1 ? never() : Promise.resolve()));
  await vi.advanceTimersByTimeAsync(66_000);

  expect(ran).toEqual([0.5, 60.5]);
});

test("a run that fails is reported with the entry's name and repeated within seconds until it succeeds", async () => {
  let runs = 0;
  const { ran, errors } = start("0 0 * * * *", async () => {
    if (++runs < 3) throw new Error("no database");
  });
  await vi.advanceTimersByTimeAsync(600_000);

  expect(errors).toEqual(["poll-events: no database", "poll-events: no database"]);
  expect(ran).toEqual([0.5, 5.5, 10.5]);
});

test("a stop waits for a run in progress, and nothing runs after it", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { ran, schedule } = start(undefined, () => promise);
  let isStopped = false;
  const stopped = schedule.stop().then(() => {
    isStopped = true;
  });
  await vi.advanceTimersByTimeAsync(10);
  expect(isStopped).toBe(false);
  resolve();
  await stopped;
  await vi.advanceTimersByTimeAsync(120_000);

  expect(ran).toEqual([0.5]);
});

test("a stop does not wait for a run that hangs", async () => {
  const { schedule } = start(undefined, never);
  const stopped = schedule.stop(1_000);
  await vi.advanceTimersByTimeAsync(1_000);

  await expect(stopped).resolves.toBeUndefined();
});
