import { schedule } from "node-cron";
import { type Clock, systemClock } from "#lib/clock.ts";
import { toError } from "#lib/errors.ts";
import { within } from "#lib/within.ts";

const EVERY_SECOND = "* * * * * *";
/**
 * node-cron waits for a wall clock time: after the clock was set back by ten minutes, it fires no tick for ten
 * minutes. An interval does.
 */
const WATCHDOG_MS = 5_000;
/** Longest pause after a tick that was not due, and longest run. */
const MAX_PAUSE_MS = 60_000;
const MAX_RUN_MS = 60_000;
const SILENT = { info() {}, warn() {}, error() {}, debug() {} };

export interface ScheduleEntry {
  readonly name: string;
  /** Whole seconds; periods are aligned to the epoch. */
  readonly everyMs: number;
  /** Periods begin this long after those that are aligned to the epoch. Whole seconds; 0 by default. */
  readonly offsetMs?: number;
  /** Claims the period for one replica. The database decides which. */
  isDue(): Promise<boolean>;
  /** Returns false when the queue did not take the job. The job is then enqueued again although the period is spent. */
  enqueue(): Promise<boolean>;
}

export interface ScheduleOptions {
  readonly entries: readonly ScheduleEntry[];
  readonly onError: (name: string, error: Error) => void;
  readonly clock?: Clock;
}

export interface Schedule {
  /** Checks every entry at once, then whenever a period begins. */
  start(): void;
  /** Waits for running checks and enqueues, but not longer than the grace. */
  stop(graceMs?: number): Promise<void>;
}

/**
 * Returns a schedule that checks in every replica, in UTC, whether entries are due. A tick that is missed, doubled or
 * early is harmless: each tick checks every entry, so the next one makes up for a blocked event loop.
 */
export function createSchedule({ entries, onError, clock = systemClock }: ScheduleOptions): Schedule {
  const tickers = entries.map((entry) => createTicker(entry, onError));
  const beat = () => {
    for (const ticker of tickers) ticker.beat(clock());
  };
  let end = () => {};

  return {
    start() {
      const task = schedule(EVERY_SECOND, beat, {
        timezone: "UTC",
        logger: SILENT,
        suppressMissedWarning: true,
      });
      const watchdog = setInterval(beat, WATCHDOG_MS);
      end = () => {
        clearInterval(watchdog);
        void task.destroy();
      };
      beat();
    },
    async stop(graceMs = 1_000) {
      end();
      await within(Promise.all(tickers.map((ticker) => ticker.idle())), graceMs);
    },
  };
}

function createTicker(entry: ScheduleEntry, onError: ScheduleOptions["onError"]) {
  const timeoutMs = Math.min(entry.everyMs, MAX_RUN_MS);
  let askedAt = Number.NEGATIVE_INFINITY;
  let askAgainAt = Number.NEGATIVE_INFINITY;
  let isEnqueueDue = false;
  let running: Promise<unknown> | null = null;

  async function run(): Promise<void> {
    if (!isEnqueueDue && !(await entry.isDue())) return;
    isEnqueueDue = true;
    isEnqueueDue = !(await entry.enqueue());
    if (!isEnqueueDue) askAgainAt = nextPeriod(askedAt, entry);
  }

  return {
    /** Does nothing while a run is in progress or before its time. A clock that was set back makes it time. */
    beat(nowMs: number): void {
      if (running !== null || (nowMs < askAgainAt && nowMs >= askedAt)) return;
      askedAt = nowMs;
      // If the period is not due, the entry is checked again within the period: this replica's clock may be ahead, or
      // the replica that claimed the period may die.
      const pauseMs = Math.max(1_000, Math.min(entry.everyMs / 4, MAX_PAUSE_MS));
      askAgainAt = Math.min(nowMs + pauseMs, nextPeriod(nowMs, entry));
      const body = run().catch((thrown: unknown) => onError(entry.name, toError(thrown)));
      const bounded = within(body, timeoutMs).then((outcome) => {
        if (running === bounded) running = null;
        // A late run is abandoned, so that a run that hangs does not stop its entry forever.
        if (outcome === "late") onError(entry.name, new Error(`took longer than ${timeoutMs} ms`));
      });
      running = bounded;
    },
    idle: (): Promise<unknown> => running ?? Promise.resolve(),
  };
}

function nextPeriod(nowMs: number, { everyMs, offsetMs = 0 }: ScheduleEntry): number {
  return (Math.floor((nowMs - offsetMs) / everyMs) + 1) * everyMs + offsetMs;
}
