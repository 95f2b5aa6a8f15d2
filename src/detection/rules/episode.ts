/** Judges minutes, and follows the episode that they make. */
import { type RuleSpikeKind, type SpikeSeverity, WINDOWS, type WindowMinutes } from "#model/kinds.ts";
import { WINDOW_COUNT } from "./detection-settings.ts";
import type { Thresholds } from "./thresholds/thresholds.ts";

/** A spike closes when this many minutes in a row were quiet. */
const QUIET_MINUTES = 15;
/** A rise after this many quiet minutes is a second wave, and another spike. */
const CALM_MINUTES = 10;
const [SHORTEST, LONGER] = WINDOWS;
/** So is a rise by this factor, in the shortest window, over a rate that was half of the highest one for twelve minutes. */
const WAVE_FACTOR = 8;
const CRITICAL_ABOVE_Z = 5;
/** A rule first seen within this many hours is new. */
const NEW_RULE_HOURS = 24;
/** A window of a new rule with at least this count is a spike instead of the less severe notice. */
const LARGE_BURST = 100;

/**
 * A spike from opening to closing. Minutes are numbered since the epoch, and times are the ends of minutes. The
 * finding is the strongest so far; `count` is the present count of its window, `peak` the highest.
 */
export interface Episode extends Finding {
  readonly openedAt: number;
  readonly lastActiveAt: number;
  readonly peak: number;
  readonly severity: SpikeSeverity;
  readonly kind: RuleSpikeKind;
}

interface ClosedMinute {
  readonly minute: number;
  /** Events of the last 3, 15 and 60 minutes, including this one. */
  readonly sums: ArrayLike<number>;
  readonly thresholds: Thresholds;
  readonly z: number;
  /** The hour of the rule's first event. */
  readonly firstHour: number;
  /** Whether a `new-rule` may be opened. Default: true. */
  readonly canBeNew?: boolean | undefined;
}

export function gradeSeverity(score: number, z: number): SpikeSeverity {
  return score >= z + CRITICAL_ABOVE_Z ? "critical" : "warning";
}

/**
 * Opens an episode if there is none, or updates an open one. Never closes it. Taking a minute twice changes nothing.
 */
export function followMinute(episode: Episode | null, closed: ClosedMinute): Episode | null {
  const finding = judgeMinute(closed.sums, closed.thresholds);
  const endsAt = closed.minute + 1;
  if (episode === null) {
    if (finding === null) return null;
    const kind = kindOf(finding, closed);
    if (kind === "new-rule" && closed.canBeNew === false) return null;
    return {
      ...finding,
      openedAt: endsAt,
      lastActiveAt: endsAt,
      peak: finding.count,
      severity: gradeSeverity(finding.score, closed.z),
      kind,
    };
  }
  // A minute from before the spike that is judged again counts only if late events made it a finding.
  if (finding === null && endsAt < episode.openedAt) return episode;
  const stronger = finding !== null && finding.score > episode.score;
  const strongest = stronger ? finding : episode;
  const { windowMinutes, usual, threshold, score } = strongest;
  const count = closed.sums[WINDOWS.indexOf(windowMinutes)] ?? 0;
  return {
    windowMinutes,
    count,
    usual,
    threshold,
    score,
    openedAt: episode.openedAt,
    lastActiveAt: isQuiet(closed.sums, closed.thresholds)
      ? episode.lastActiveAt
      : Math.max(episode.lastActiveAt, endsAt),
    peak: windowMinutes === episode.windowMinutes ? Math.max(episode.peak, count) : count,
    severity: stronger ? gradeSeverity(score, closed.z) : episode.severity,
    // A `new-rule` may become a `spike`, never the reverse.
    kind: episode.kind === "new-rule" && finding !== null ? kindOf(finding, closed) : episode.kind,
  };
}

/**
 * Returns whether the episode is over. `minute` is the latest closed minute, already followed. Minutes before
 * `quietFrom` are unknown.
 */
export function isOver(episode: Episode, minute: number, quietFrom = 0): boolean {
  return minute + 1 - Math.max(episode.lastActiveAt, quietFrom) >= QUIET_MINUTES;
}

/** Returns the episode as it ends: its count is the present one. */
function endEpisode(episode: Episode, sums: ArrayLike<number>): Episode {
  return { ...episode, count: presentCount(sums, WINDOWS.indexOf(episode.windowMinutes)) };
}

/** What the detector of a series remembers from one minute to the next. */
export interface Followed {
  episode: Episode | null;
  /** Events of minutes before this belong to an episode that has ended. */
  countFrom: number;
  /** Minutes before this are unknown, so they count as neither quiet nor active. */
  quietFrom: number;
}

/** An episode that has ended. */
export interface PastEpisode extends Episode {
  /** The end of the last quiet minute. */
  readonly closedAt: number;
}

/** A minute of a series. `sumsFrom` returns the sums of its windows without the minutes before the given one. */
export interface FollowedMinute extends Omit<ClosedMinute, "sums"> {
  readonly sumsFrom: (minute: number) => ArrayLike<number>;
  /** The count of a running minute can only grow, so it opens a spike and makes one graver, and is never quiet. */
  readonly isRunning?: boolean;
  /** Whether the minute was judged before, without the events that have come since. It begins no second wave. */
  readonly isAgain?: boolean;
}

/**
 * Judges one minute of a series: opens, updates or ends its episode. Returns the episode that ended. If events come after ten
 * quiet minutes, or many after few, they are a second wave: the episode ends before them, and they open another one.
 */
export function followSeries(series: Followed, closed: FollowedMinute): PastEpisode | null {
  const { minute, thresholds, sumsFrom, isRunning = false, isAgain = false } = closed;
  let past: PastEpisode | null = null;
  if (series.episode !== null && !isAgain) {
    const calm = Math.max(series.episode.lastActiveAt, series.quietFrom) + CALM_MINUTES;
    const from = minute >= calm ? calm : minute + 1 - SHORTEST;
    // A running minute is compared with other minutes before than when it is over, so it begins a wave only after quiet ones.
    const isWave = minute >= calm || (!isRunning && risesAgain(series, series.episode, closed));
    if (isWave && isSpiking(sumsFrom(from), thresholds)) {
      past = { ...series.episode, closedAt: from };
      series.episode = null;
      series.countFrom = from;
    }
  }
  const sums = sumsFrom(series.countFrom);
  series.episode = followMinute(series.episode, { ...closed, sums });
  if (series.episode === null || isRunning || !isOver(series.episode, minute, series.quietFrom)) return past;
  past = { ...endEpisode(series.episode, sums), closedAt: minute + 1 };
  series.episode = null;
  series.countFrom = minute + 1;
  return past;
}

/** Returns whether an episode that never became quiet rises again: its events went on slowly, and now come fast. */
function risesAgain(
  { countFrom, quietFrom }: Followed,
  { openedAt, peak, windowMinutes }: Episode,
  { minute, sumsFrom }: FollowedMinute,
): boolean {
  if (minute < Math.max(openedAt, countFrom, quietFrom) + LONGER) return false;
  const sums = sumsFrom(countFrom);
  const [short, longer] = [sums[0] ?? 0, sums[1] ?? 0];
  const before = (longer - short) / (LONGER - SHORTEST);
  return short / SHORTEST >= WAVE_FACTOR * before && before <= peak / windowMinutes / 2;
}

function kindOf(finding: Finding, { minute, firstHour }: ClosedMinute): RuleSpikeKind {
  const isNew = minute / 60 - firstHour < NEW_RULE_HOURS;
  return isNew && finding.count < LARGE_BURST ? "new-rule" : "spike";
}

/** The window of a minute with the highest score among those at or above their threshold. */
export interface Finding {
  readonly windowMinutes: WindowMinutes;
  /** S, the number of events of the window. */
  readonly count: number;
  readonly usual: number;
  readonly threshold: number;
  /** Deviations above the expected peak, at least z. */
  readonly score: number;
}

/** Returns whether a window reaches its threshold. `sums`: events of the last 3, 15 and 60 closed minutes. */
export function isSpiking(sums: ArrayLike<number>, { threshold }: Thresholds): boolean {
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    if ((sums[i] as number) >= (threshold[i] as number)) return true;
  }
  return false;
}

/** Returns the minute's finding, or null if no window reaches its threshold. */
export function judgeMinute(sums: ArrayLike<number>, thresholds: Thresholds): Finding | null {
  let best: Finding | null = null;
  for (const [i, windowMinutes] of WINDOWS.entries()) {
    const count = sums[i] as number;
    const threshold = thresholds.threshold[i] as number;
    if (count < threshold) continue;
    const score = (Math.log1p(count) - (thresholds.level[i] as number)) / (thresholds.deviation[i] as number);
    if (best !== null && best.score >= score) continue;
    best = { windowMinutes, count, usual: thresholds.usual[i] as number, threshold, score };
  }
  return best;
}

/**
 * Returns whether every window is below half of its threshold. Two exceptions keep spikes from staying open for long.
 * On a busy rule half of the threshold can lie below everyday peaks, so a window within one deviation of the expected
 * peak is quiet too. The hour is judged by four times its last quarter if that is less, because otherwise an attack
 * that is over would keep its spike open for another hour.
 */
function isQuiet(sums: ArrayLike<number>, thresholds: Thresholds): boolean {
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    const everyday = Math.exp((thresholds.level[i] as number) + (thresholds.deviation[i] as number)) - 1;
    if (presentCount(sums, i) >= Math.max((thresholds.threshold[i] as number) / 2, everyday)) return false;
  }
  return true;
}

/** Returns the count of a window as it is at present: of an hour, four times its last quarter if that is less. */
function presentCount(sums: ArrayLike<number>, window: number): number {
  const count = sums[window] as number;
  return window === WINDOW_COUNT - 1 ? Math.min(count, 4 * (sums[window - 1] as number)) : count;
}
