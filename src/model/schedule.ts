import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { LastResult } from "./kinds.ts";

/** A tick enqueues the job of the same name. Expressions have six fields, in UTC, and begin with the second. */
export interface Tick {
  /** The default expression. */
  readonly expression: string;
  /** The default with more zones than the request budget can poll as often as `expression`. */
  readonly slowest?: string;
  /** The default with the emulated platform. It is shorter, because a demonstration should show results soon. */
  readonly emulated?: string;
  /** The longest pause between two runs that keeps the promise of the job. */
  readonly longestMs: number;
  /** The consequence of a longer pause. */
  readonly because: string;
  /** Things for which the job runs, one by one. Left out: it runs once. */
  readonly per?: "zone" | "destination";
  /** The setting without which no process runs the job. */
  readonly needs?: string;
}

const BEFORE_LOSS =
  "the platform forgets an hour 72 hours after it, and LONGWATCH_LAST_PROOF_HOURS may leave one";
const SOON = "an alert is later by this pause";

/** Every tick by its job's name, in the order in which data passes the jobs. These jobs enqueue all others. */
export const TICKS = {
  "manage-partitions": {
    expression: "0 0 * * * *",
    longestMs: DAY_MS,
    because: "events of a day need its partition, and retention is counted in days",
  },
  "pseudonymise-ips": {
    expression: "0 0 * * * *",
    longestMs: DAY_MS,
    because: "LONGWATCH_IP_DAYS is counted in days",
  },
  "erase-leftovers": {
    expression: "0 */5 * * * *",
    longestMs: HOUR_MS,
    because: "an erased event that was on its way must not stay",
  },
  "poll-events": {
    expression: "*/10 * * * * *",
    slowest: "*/30 * * * * *",
    longestMs: 12 * HOUR_MS,
    because: "a zone counts as not polled after three pauses, and the platform forgets events after 72 hours",
    per: "zone",
  },
  "walk-days": {
    expression: "0 * * * * *",
    longestMs: HOUR_MS,
    because: "a day's last list pass begins six hours before the platform forgets the day",
    per: "zone",
  },
  "judge-held": {
    expression: "0 * * * * *",
    longestMs: HOUR_MS,
    because: "no hour with held events can be sealed",
  },
  "reconcile-counts": {
    expression: "0 */5 * * * *",
    emulated: "0 * * * * *",
    longestMs: 30 * MINUTE_MS,
    because: BEFORE_LOSS,
    per: "zone",
  },
  "seal-windows": {
    expression: "0 */5 * * * *",
    emulated: "0 * * * * *",
    longestMs: 30 * MINUTE_MS,
    because: BEFORE_LOSS,
    per: "zone",
  },
  "roll-up-trends": { expression: "*/30 * * * * *", longestMs: 5 * MINUTE_MS, because: SOON },
  "snapshot-rule-metrics": {
    expression: "0 */5 * * * *",
    longestMs: HOUR_MS,
    because: "each run asks about few rules, and every rule is due once a day",
  },
  "archive-days": {
    expression: "0 0 * * * *",
    emulated: "0 * * * * *",
    longestMs: DAY_MS,
    because: "LONGWATCH_HOT_DAYS is counted in days",
    needs: "an archive: LONGWATCH_ARCHIVE_DIR, LONGWATCH_ARCHIVE_URL or the embedded Postgres",
  },
  // Every roll-up that the detectors can use enqueues them. The ticks make up for a lost enqueue.
  "detect-spikes": { expression: "*/30 * * * * *", longestMs: 5 * MINUTE_MS, because: SOON },
  "detect-sources": { expression: "*/30 * * * * *", longestMs: 5 * MINUTE_MS, because: SOON },
  "detect-rule-changes": { expression: "45 */2 * * * *", longestMs: HOUR_MS, because: SOON },
  // Roll-ups enqueue it. The tick finds what ends, and what does not come.
  "judge-conditions": { expression: "20 * * * * *", longestMs: 5 * MINUTE_MS, because: SOON },
  "judge-late": {
    expression: "30 */2 * * * *",
    longestMs: HOUR_MS,
    because: "hours that were copied late are not judged until then",
  },
  // New spikes enqueue it at once. The tick finds the later verdicts.
  "judge-verdicts": {
    expression: "15 * * * * *",
    longestMs: HOUR_MS,
    because: "a spike is judged again after half an hour, six hours and a day",
  },
  "learn-usual": {
    expression: "0 20 1 * * *",
    emulated: "30 */10 * * * *",
    longestMs: 7 * DAY_MS,
    because: "verdicts compare with what was usual in the weeks before",
    per: "zone",
  },
  "watch-plans": {
    expression: "40 */15 * * * *",
    longestMs: 3 * HOUR_MS,
    because: "an alert about blocked visitors is later by this pause",
  },
  // Runs even with nothing due, because messages are copied to the fallback channel by their age.
  "deliver-alerts": { expression: "0 * * * * *", longestMs: 5 * MINUTE_MS, because: SOON },
  "forward-events": {
    expression: "*/10 * * * * *",
    longestMs: HOUR_MS,
    because: "a destination gets events later by this pause",
    per: "destination",
    needs: "forward in the configuration file",
  },
  sweep: {
    expression: "*/10 * * * * *",
    longestMs: 5 * MINUTE_MS,
    because: "work whose queue message was lost waits for it",
  },
  "report-service": { expression: "0 * * * * *", longestMs: 5 * MINUTE_MS, because: SOON },
  "send-digest": {
    expression: "0 0 7 * * 1",
    longestMs: 7 * DAY_MS,
    because: "the digest is of one week",
  },
  "send-heartbeat": {
    expression: "0 * * * * *",
    longestMs: DAY_MS,
    because: "a monitor reports a missing heartbeat",
    needs: "LONGWATCH_HEARTBEAT_URL",
  },
} as const satisfies Record<string, Tick>;

export type TickName = keyof typeof TICKS;
export const TICK_NAMES = Object.keys(TICKS) as TickName[];

/** The expression of each tick. */
export type Schedule = Readonly<Record<TickName, string>>;

/** The zones that share a request budget. */
export interface Polled {
  readonly zones: number;
  readonly requestsPerSecond: number;
}

/** Several accounts are polled no more often than one with this budget: 300 zones every half a minute, with half a core. */
const SHARED_PER_SECOND = 20;

/** Returns the zones that have the fewest requests each, of one account or of all together: their schedule fits all. */
export function findTightest(accounts: readonly Polled[]): Polled {
  const load = ({ zones, requestsPerSecond }: Polled) => zones / requestsPerSecond;
  const [first = { zones: 0, requestsPerSecond: 1 }, ...others] = accounts.filter(({ zones }) => zones > 0);
  if (others.length === 0) return first;
  const zones = others.reduce((sum, one) => sum + one.zones, first.zones);
  return [...others, { zones, requestsPerSecond: SHARED_PER_SECOND }].reduce(
    (tightest, one) => (load(one) > load(tightest) ? one : tightest),
    first,
  );
}

/** The pauses in seconds that divide a minute, between ten seconds and that of `slowest`. */
const POLL_PAUSES = [10, 12, 15, 20, 30];
/** The share of the request budget that polls may take by themselves. */
const POLL_SHARE = 0.5;

/**
 * Returns the expression by which zones are polled unless it is configured: every ten seconds, or the shortest pause in
 * which all zones take half of the request budget. From 150 zones within ten requests a second on, that is half a minute,
 * and zones take turns.
 */
export function pollExpression({ zones, requestsPerSecond }: Polled): string {
  const seconds = zones / (POLL_SHARE * requestsPerSecond);
  return `*/${POLL_PAUSES.find((pause) => pause >= seconds) ?? 30} * * * * *`;
}

/** Returns the expressions in use: the given ones, and the defaults for the others. */
export function toSchedule(
  given: Partial<Schedule>,
  { isEmulated, ...polled }: Polled & { readonly isEmulated: boolean },
): Schedule {
  const fallback = ({ expression, emulated = expression }: Tick) => (isEmulated ? emulated : expression);
  const defaults = TICK_NAMES.map((name) => [name, fallback(TICKS[name])]);
  return { ...Object.fromEntries(defaults), "poll-events": pollExpression(polled), ...given } as Schedule;
}

/** The last run of a tick's job in one process. */
export interface LastRun {
  /** Time at which the run ended, epoch ms. */
  readonly at: number;
  readonly result: LastResult;
  /** The reason why the run did nothing or failed. */
  readonly why: string | null;
}

/** The report of one process on one of its ticks. */
export interface TickReport {
  readonly expression: string;
  /** Null before the first run in this process. */
  readonly lastRun: LastRun | null;
}
