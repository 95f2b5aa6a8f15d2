import { type RuleSpikeKind, type SpikeSeverity, WINDOWS } from "#model/kinds.ts";
import { type Finding, isQuiet, judgeMinute, presentCount } from "./judge-minute.ts";
import type { Thresholds } from "./thresholds/thresholds.ts";

/** A spike closes when this many minutes in a row were quiet. */
const QUIET_MINUTES = 15;
/** A rise after this many quiet minutes is a second wave, and another spike. */
const CALM_MINUTES = 10;
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

export interface ClosedMinute {
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
export function endEpisode(episode: Episode, sums: ArrayLike<number>): Episode {
  return { ...episode, count: presentCount(sums, WINDOWS.indexOf(episode.windowMinutes)) };
}

/**
 * Returns the minute from which on events are a second wave: the spike was quiet for ten minutes before it. Null if it was not.
 * The spike then closes there. Minutes before `quietFrom` are unknown.
 */
export function calmSince({ lastActiveAt }: Episode, minute: number, quietFrom = 0): number | null {
  const calm = Math.max(lastActiveAt, quietFrom) + CALM_MINUTES;
  return minute >= calm ? calm : null;
}

function kindOf(finding: Finding, { minute, firstHour }: ClosedMinute): RuleSpikeKind {
  const isNew = minute / 60 - firstHour < NEW_RULE_HOURS;
  return isNew && finding.count < LARGE_BURST ? "new-rule" : "spike";
}
