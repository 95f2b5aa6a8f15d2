/** Enqueues each job at its ticks, spread over the first seconds of their interval. */
import { createTask } from "node-cron";
import { type CronRun, readPauses } from "#lib/cron.ts";
import { toError } from "#lib/errors.ts";
import { within } from "#lib/waiting.ts";

const WATCHDOG_MS = 5_000;
/** The watchdog is late by more than this after the clock was set, the machine slept or the event loop was blocked. */
const MAX_LATE_MS = 2_000;
/** Longest run of a tick. */
const MAX_RUN_MS = 60_000;
const SILENT = { info() {}, warn() {}, error() {}, debug() {} };

export interface ScheduleEntry {
  readonly name: string;
  /** A cron expression of six fields, in UTC. */
  readonly expression: string;
  /** Claims the run for one replica and enqueues its jobs. */
  run(run: CronRun): Promise<void>;
}

interface ScheduleOptions {
  readonly entries: readonly ScheduleEntry[];
  readonly onError: (name: string, error: Error) => void;
}

interface Schedule {
  /** Runs every entry at once, then whenever its expression says. */
  start(): void;
  /** Waits for running ticks, but not longer than the grace. */
  stop(graceMs?: number): Promise<void>;
}

/**
 * Returns a schedule with one node-cron task per entry. node-cron waits for a wall clock time: after the clock was set
 * back by ten minutes, no task fires for ten minutes. The watchdog then begins anew. It also repeats failed runs.
 */
export function createSchedule({ entries, onError }: ScheduleOptions): Schedule {
  const tickers = entries.map((entry) => createTicker(entry, onError));
  let watchdog: NodeJS.Timeout | undefined;
  return {
    start() {
      let checkedAt = Date.now();
      watchdog = setInterval(() => {
        const isLate = Math.abs(Date.now() - checkedAt - WATCHDOG_MS) > MAX_LATE_MS;
        checkedAt = Date.now();
        for (const ticker of tickers) {
          if (isLate) ticker.begin();
          else ticker.repeatFailed();
        }
      }, WATCHDOG_MS);
      for (const ticker of tickers) ticker.begin();
    },
    async stop(graceMs = 1_000) {
      clearInterval(watchdog);
      for (const ticker of tickers) ticker.end();
      await within(Promise.all(tickers.map((ticker) => ticker.idle())), graceMs);
    },
  };
}

function createTicker(entry: ScheduleEntry, onError: ScheduleOptions["onError"]) {
  const { name, expression } = entry;
  const timeoutMs = Math.min(readPauses(expression).shortestMs, MAX_RUN_MS);
  let hasFailed = false;
  let running: Promise<void> | null = null;
  const task = createTask(expression, ({ date }) => tick(date.getTime()), {
    timezone: "UTC",
    logger: SILENT,
    suppressMissedWarning: true,
    // After a blocked event loop, node-cron makes up for the last missed run.
    missedExecutionTolerance: Number.POSITIVE_INFINITY,
  });

  function tick(at: number): void {
    if (running !== null) return;
    running = run(at).finally(() => {
      running = null;
    });
  }

  /** A late run is abandoned, so that a run that hangs does not stop its entry forever. */
  async function run(at: number): Promise<void> {
    try {
      const [nextAt = at, runAfterNext = at] = task.getNextRuns(2).map((date) => date.getTime());
      // A replica that starts shortly before a run may ask after another has claimed that run. Any may ask late.
      const latestNextAt = Math.max(runAfterNext, nextAt + MAX_RUN_MS);
      if ((await within(entry.run({ at, nextAt, latestNextAt }), timeoutMs)) === "late")
        throw new Error(`took longer than ${timeoutMs} ms`);
      hasFailed = false;
    } catch (thrown) {
      hasFailed = true;
      onError(name, toError(thrown));
    }
  }

  return {
    begin(): void {
      void task.stop();
      void task.start();
      tick(Date.now());
    },
    repeatFailed(): void {
      if (hasFailed) tick(Date.now());
    },
    end: (): void => void task.destroy(),
    idle: (): Promise<unknown> => running ?? Promise.resolve(),
  };
}

/** Number of jobs of one tick that are enqueued together. */
const TOGETHER = 8;

/**
 * Returns the delay of the job with this index, in whole seconds. The jobs of many zones are spread over the time until the
 * tick's next run, so that the last zone does not wait for the calls of all others.
 */
export function staggerTicks(index: number, count: number, untilNextMs: number): number {
  const groups = Math.ceil(count / TOGETHER);
  const group = Math.floor(index / TOGETHER);
  return Math.floor((group * untilNextMs) / groups / 1_000) * 1_000;
}

/**
 * Returns the items of this turn, of which each may take only so many. Over the turns, which are numbered from 1, every item
 * comes equally often.
 */
export function takeTurn<Item>(items: readonly Item[], most: number, turn: number): readonly Item[] {
  if (items.length <= most) return items;
  const first = ((turn - 1) * most) % items.length;
  return [...items.slice(first), ...items.slice(0, first)].slice(0, most);
}

/** Returns the items of all lists by turns: the first of each list, then the second of each. */
export function interleave<Item>(lists: readonly (readonly Item[])[]): readonly Item[] {
  const most = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: most }, (_, index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat();
}
