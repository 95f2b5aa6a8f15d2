/** Computes thresholds from a history, and keeps them. */
import { WINDOWS } from "#model/kinds.ts";
import { FLOOR, type SpikePolicy, WINDOW_COUNT } from "../detection-settings.ts";
import { advanceHours, type HourHistory, type RulePrior, slotOf } from "./hour-history.ts";

/**
 * Hours back to the oldest one judged. The current hour and the one before it are left out, so that an attack does
 * not raise its own threshold.
 */
export const HISTORY_HOURS = 169;
const NEWEST_HOUR = 2;
/** Weight of the overall level on a time of day, in hours. */
const LEVEL_WEIGHT = 3;
const PRIOR_HOURS = 12;
const PRIOR_DEVIATION = 0.6;
/** A rule with this many hours of its own needs no prior. */
export const ENOUGH_HOURS = 24;
const PSEUDO_HOURS = 12;
const CLIP_DEVIATIONS = 2;
const RESIDUAL_DEVIATIONS = 3;
/** Weight of no change on the recent level, in hours. */
const RECENT_WEIGHT = 2;
const SILENT_SHARE = 0.8;
const RECORD_CAP = 200;
const CLUMP_POWER = 0.7;

/**
 * The values that one hour's minutes are compared with, by window (3, 15, 60 minutes). Logarithms are natural, of 1 +
 * count.
 */
export interface Thresholds {
  /** T: a window with at least this count is a spike. */
  readonly threshold: Float64Array;
  /** Expected logarithm of the hour's peak: mu of this time of day plus the recent level. */
  readonly level: Float64Array;
  readonly deviation: Float64Array;
  /** The window's average count at this time of day. */
  readonly usual: Float64Array;
}

export function createThresholds(): Thresholds {
  const column = () => new Float64Array(WINDOW_COUNT);
  return { threshold: column(), level: column(), deviation: column(), usual: column() };
}

// Work space, filled and read within one call, so that judging tens of thousands of series allocates nothing.
const hours = new Int32Array(HISTORY_HOURS);
const values = new Float64Array(HISTORY_HOURS);
const clipped = new Float64Array(HISTORY_HOURS);
const hoursOfDay = new Int32Array(24);
const sums = new Float64Array(24);
const expected = new Float64Array(24);

/** ln(1 + count). Most counts are small, and a table is several times faster than the function. */
const SMALL_LOGS = Float64Array.from({ length: 4_096 }, (_, count) => Math.log1p(count));
function logOf(count: number): number {
  return count < SMALL_LOGS.length ? (SMALL_LOGS[count] as number) : Math.log1p(count);
}

/**
 * Returns the thresholds for the minutes of `hour`, from the closed hours [hour - 169, hour - 2] since the rule's
 * first event. The logarithm of a peak is compared with the rule's own hourly peaks. Logarithms, clipping and the
 * capped record keep one past attack from hiding the next.
 */
export function computeThresholds(
  history: HourHistory,
  hour: number,
  policy: SpikePolicy,
  out: Thresholds = createThresholds(),
): Thresholds {
  advanceHours(history, hour);
  const count = gatherHours(history, hour, policy);
  const { z, floor = FLOOR } = policy;
  const belief = believe(policy, count);
  const activity = summariseActivity(history, count, hour % 24, belief);
  for (let window = 0; window < WINDOW_COUNT; window += 1) {
    let record = 0;
    for (let i = 0; i < count; i += 1) {
      const peak = history.peaks[slotOf(hours[i] as number) * WINDOW_COUNT + window] as number;
      values[i] = logOf(peak);
      record = Math.max(record, peak);
    }
    const pseudo = {
      hours: belief.hours,
      level: belief.prior?.level[window] ?? 0,
      variance: belief.prior?.variance[window] ?? 0,
    };
    const deviation = fitClipped(count, pseudo);
    const level = (expected[hour % 24] as number) + recentLevel(count, hour, deviation);
    let threshold = Math.max(floor, Math.exp(level + z * deviation) - 1);
    // For a rule without events in more than a fifth of its hours, its record and its clustering count too.
    if (policy.isSteady !== true && activity.active < SILENT_SHARE * count) {
      threshold = Math.max(threshold, Math.min(2 * (record + 1) - 1, RECORD_CAP));
      threshold = Math.max(threshold, floor * activity.clump ** CLUMP_POWER);
    }
    out.threshold[window] = threshold;
    out.level[window] = level;
    out.deviation[window] = deviation;
    out.usual[window] = (activity.usualPerHour * (WINDOWS[window] as number)) / 60;
  }
  return out;
}

/**
 * The platform's daily counts as hours in addition to the observed ones. The more hours were observed, the fewer are
 * added.
 */
interface Belief {
  readonly hours: number;
  readonly prior: RulePrior | null;
}

interface PseudoHours {
  readonly hours: number;
  readonly level: number;
  readonly variance: number;
}

const NO_BELIEF: Belief = { hours: 0, prior: null };

function believe({ prior }: SpikePolicy, count: number): Belief {
  if (prior === undefined || prior === null || count >= ENOUGH_HOURS) return NO_BELIEF;
  return { hours: PSEUDO_HOURS * (1 - count / ENOUGH_HOURS), prior };
}

/** Returns how many hours the history of `hour` has. */
export function countHistory(history: HourHistory, hour: number, policy: SpikePolicy): number {
  return gatherHours(history, hour, policy);
}

/** Fills `hours` (ascending) and `hoursOfDay`; returns how many hours there are. */
function gatherHours(history: HourHistory, hour: number, policy: SpikePolicy): number {
  hoursOfDay.fill(0);
  let count = 0;
  for (let h = Math.max(hour - HISTORY_HOURS, history.firstHour); h <= hour - NEWEST_HOUR; h += 1) {
    if (policy.isUnknownHour?.(h) === true) continue;
    hours[count] = h;
    hoursOfDay[h % 24] = (hoursOfDay[h % 24] as number) + 1;
    count += 1;
  }
  return count;
}

/**
 * Fits, clips the values to two deviations around the fit, and fits again, so that past attacks do not raise the fit.
 */
function fitClipped(count: number, pseudo: PseudoHours): number {
  const first = fit(values, count, pseudo);
  for (let i = 0; i < count; i += 1) {
    const centre = expected[(hours[i] as number) % 24] as number;
    const reach = CLIP_DEVIATIONS * first;
    clipped[i] = Math.min(Math.max(values[i] as number, centre - reach), centre + reach);
  }
  return fit(clipped, count, pseudo);
}

/** Fills `expected` by hour of day. Returns the deviation around it. */
function fit(data: Float64Array, count: number, pseudo: PseudoHours): number {
  sums.fill(0);
  let total = 0;
  for (let i = 0; i < count; i += 1) {
    const hourOfDay = (hours[i] as number) % 24;
    sums[hourOfDay] = (sums[hourOfDay] as number) + (data[i] as number);
    total += data[i] as number;
  }
  const weight = count + pseudo.hours;
  const overall = weight > 0 ? (total + pseudo.hours * pseudo.level) / weight : 0;
  for (let d = 0; d < 24; d += 1) {
    const [before, after] = [(d + 23) % 24, (d + 1) % 24];
    const sum = (sums[before] as number) + (sums[d] as number) + (sums[after] as number);
    const n = (hoursOfDay[before] as number) + (hoursOfDay[d] as number) + (hoursOfDay[after] as number);
    const around = (sum + LEVEL_WEIGHT * overall) / (n + LEVEL_WEIGHT);
    // The exact hour wins if it is higher, because of daily jobs.
    expected[d] = Math.max(around, ((sums[d] as number) + around) / ((hoursOfDay[d] as number) + 1));
  }
  let squares = PRIOR_HOURS * PRIOR_DEVIATION ** 2 + pseudo.hours * (PRIOR_DEVIATION ** 2 + pseudo.variance);
  for (let i = 0; i < count; i += 1) {
    squares += ((data[i] as number) - (expected[(hours[i] as number) % 24] as number)) ** 2;
  }
  return Math.sqrt(squares / (count + PRIOR_HOURS + pseudo.hours));
}

/** Returns how far the two newest judged hours deviate from the expectation, shrunk towards zero. */
function recentLevel(count: number, hour: number, deviation: number): number {
  const reach = RESIDUAL_DEVIATIONS * deviation;
  let sum = 0;
  let found = 0;
  for (let i = count - 1; i >= 0 && (hours[i] as number) >= hour - NEWEST_HOUR - 1; i -= 1) {
    const residual = (values[i] as number) - (expected[(hours[i] as number) % 24] as number);
    sum += Math.min(Math.max(residual, -reach), reach);
    found += 1;
  }
  return sum / (found + RECENT_WEIGHT);
}

/**
 * Returns the number of hours with events, the damped geometric mean of their counts, and the mean count of
 * comparable hours.
 */
function summariseActivity(
  history: HourHistory,
  count: number,
  hourOfDay: number,
  { hours: pseudoHours, prior }: Belief,
) {
  let active = 0;
  let logs = 0;
  let all = 0;
  let near = 0;
  let nearHours = 0;
  for (let i = 0; i < count; i += 1) {
    const hour = hours[i] as number;
    const n = history.events[slotOf(hour)] as number;
    if (n > 0) {
      active += 1;
      logs += Math.log(n);
    }
    all += n;
    const distance = Math.abs((hour % 24) - hourOfDay);
    if (distance <= 1 || distance === 23) {
      near += n;
      nearHours += 1;
    }
  }
  const expected = pseudoHours * (prior?.eventsPerHour ?? 0);
  const overall = (all + expected) / Math.max(count + pseudoHours, 1);
  const usualPerHour = nearHours > 0 && pseudoHours === 0 ? near / nearHours : overall;
  return { active, clump: Math.exp(logs / (active + 1)), usualPerHour };
}

/**
 * Thresholds belong to the hour. A late event may change an old hour, so thresholds are not cached for the whole
 * hour.
 */
const KEPT_MS = 600_000;

interface CachedThresholds {
  readonly thresholds: Thresholds;
  /** The hour of the rule's first event; Infinity without any. */
  readonly firstHour: number;
}

export type ThresholdCache = ReturnType<typeof createThresholdCache>;

/**
 * Returns a cache that saves reading 168 hours per series at every tick. Every entry can be computed again. A key names
 * everything that thresholds depend on besides the counts.
 */
export function createThresholdCache() {
  const entries = new Map<string, CachedThresholds & { untilMs: number }>();
  return {
    get(key: string, nowMs: number): CachedThresholds | undefined {
      const entry = entries.get(key);
      return entry !== undefined && nowMs < entry.untilMs ? entry : undefined;
    },
    set(key: string, cached: CachedThresholds, nowMs: number): void {
      entries.set(key, { ...cached, untilMs: nowMs + KEPT_MS });
    },
    /** Removes entries that are too old to be used again. */
    prune(nowMs: number): void {
      for (const [key, { untilMs }] of entries) if (nowMs >= untilMs) entries.delete(key);
    },
  };
}
