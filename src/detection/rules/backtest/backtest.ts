/** Replays counts through the detector, and suggests its sensitivity. */
import { type SpikeSeverity, WINDOWS } from "#model/kinds.ts";
import { LONGEST_WINDOW, type SpikePolicy } from "../detection-settings.ts";
import type { Episode } from "../episode.ts";
import { createSeriesWatch, passMinutes, type SeriesWatch, takeMinute } from "../series-watch.ts";
import { computeThresholds } from "../thresholds/thresholds.ts";

/**
 * At the beginning of a record no series has a history, so everyday traffic looks new. These minutes are judged in
 * hindsight.
 */
const LEARNING_MINUTES = 180;
/** A series seen this early existed before the record began. */
const FIRST_SEEN_MINUTES = 60;
/** During this time every rule is new to the record. Shorter records are judged as they are. */
const NEW_RECORD_MINUTES = 1_440;

/** Minutes are numbered since the epoch; a span is half-open. */
export interface BacktestOptions extends SpikePolicy {
  /** Start of the judging. Earlier minutes are history. Default: the beginning of the counts. */
  readonly startMinute?: number | undefined;
  /** Counts from here on are left out. Default: the end of the counts. */
  readonly endMinute?: number | undefined;
  /** Returns the deviations from the policy for one series. */
  readonly policyOf?: ((series: string) => Partial<SpikePolicy>) | undefined;
}

/** One alert and its minutes: from the one that reached its threshold to the last that was not quiet. */
export interface BacktestAlert {
  readonly series: string;
  readonly fromMinute: number;
  readonly toMinute: number;
  readonly isOpen: boolean;
  readonly episode: Episode;
}

export interface BacktestReport {
  readonly fromMinute: number;
  readonly toMinute: number;
  readonly series: number;
  readonly seriesDays: number;
  /** Number of accepted rows, and the events that they count. */
  readonly rows: number;
  readonly events: number;
  readonly alerts: readonly BacktestAlert[];
  readonly alertMinutes: number;
  readonly alertsPerSeriesDay: number;
  readonly bySeverity: Readonly<Record<SpikeSeverity, number>>;
  /** Number of alerts that are the less severe notice of a new rule. */
  readonly newRules: number;
}

interface Followed {
  readonly series: string;
  readonly watch: SeriesWatch;
  readonly policy: SpikePolicy;
  readonly firstMinute: number;
  readonly hindsight: ReturnType<typeof createHindsight>;
  readonly keep: (episode: Episode) => void;
}

interface Backtest {
  /**
   * Accepts one row. Rows of a series come in ascending order, each minute once; series may alternate. If a row
   * breaks that order, returns the minute that the row would have to come after.
   */
  readonly take: (series: string, minute: number, count: number) => number | undefined;
  readonly report: () => BacktestReport;
}

/**
 * Returns a backtest that replays counts through the detector. It needs about ten kilobytes per series, however many
 * rows there are.
 */
export function createBacktest(options: BacktestOptions): Backtest {
  const { startMinute, endMinute = Number.POSITIVE_INFINITY } = options;
  const followed = new Map<string, Followed>();
  const closed: { one: Followed; episode: Episode }[] = [];
  let current: Followed | undefined;
  let [first, last, rows, events] = [Number.POSITIVE_INFINITY, 0, 0, 0];

  function follow(series: string, firstMinute: number): Followed {
    const watch = createSeriesWatch();
    const policy = { ...options, ...options.policyOf?.(series) };
    const hindsight = createHindsight(watch, policy);
    const one: Followed = { series, watch, policy, firstMinute, hindsight, keep };
    function keep(episode: Episode): void {
      closed.push({ one, episode });
      // How early in the record the episode is can only be decided at the record's end.
      if (episode.openedAt - firstMinute <= NEW_RECORD_MINUTES) hindsight.expect(episode);
    }
    return one;
  }

  function take(series: string, minute: number, count: number): number | undefined {
    // Files are mostly sorted by series, so the previous row's series is the likeliest.
    if (current?.series !== series) current = followed.get(series);
    if (minute >= endMinute) return undefined;
    if (current === undefined) {
      current = follow(series, minute);
      followed.set(series, current);
    }
    const { watch, policy, hindsight, keep } = current;
    if (watch.next !== null && minute < watch.next) return watch.next - 1;
    hindsight.reach(minute, keep);
    takeMinute(watch, minute, count, policy, keep);
    first = Math.min(first, minute);
    last = Math.max(last, minute);
    rows += 1;
    events += count;
    return undefined;
  }

  function report(): BacktestReport {
    const recordStart = Math.min(first, startMinute ?? first);
    const fromMinute = startMinute ?? (rows === 0 ? 0 : first);
    const toMinute = Math.max(fromMinute, Number.isFinite(endMinute) ? endMinute : last + 1);
    for (const { watch, policy, hindsight, keep } of followed.values()) {
      hindsight.reach(toMinute, keep);
      passMinutes(watch, toMinute, policy, keep);
    }
    const open = [...followed.values()].flatMap((one) =>
      one.watch.episode === null ? [] : [{ one, episode: one.watch.episode }],
    );
    const isEarly = createEarly(recordStart, toMinute);
    const order = new Map([...followed.values()].map((one, place) => [one, place]));
    const alerts = [...closed, ...open]
      .filter(({ one, episode }) => {
        return !(isEarly(one.firstMinute, episode) && one.hindsight.isEveryday(episode, toMinute));
      })
      .toSorted(
        (a, b) =>
          (order.get(a.one) ?? 0) - (order.get(b.one) ?? 0) || a.episode.openedAt - b.episode.openedAt,
      )
      .map(({ one, episode }) => toAlert(one, episode, fromMinute, toMinute))
      .filter((alert) => alert.fromMinute < alert.toMinute);
    return summarise(alerts, { fromMinute, toMinute, series: followed.size, rows, events });
  }

  return { take, report };
}

/** Returns a check whether an episode may only show that the record has just begun. */
function createEarly(recordStart: number, recordEnd: number) {
  if (recordEnd - recordStart < NEW_RECORD_MINUTES) return () => false;
  return (firstMinute: number, { openedAt, kind }: Episode) => {
    const age = openedAt - recordStart;
    const isOld = firstMinute < recordStart + FIRST_SEEN_MINUTES;
    return (isOld && age <= LEARNING_MINUTES) || (kind === "new-rule" && age <= NEW_RECORD_MINUTES);
  };
}

function toAlert({ series, watch }: Followed, episode: Episode, from: number, to: number): BacktestAlert {
  return {
    series,
    // The times of an episode are the ends of minutes.
    fromMinute: Math.max(episode.openedAt - 1, from),
    toMinute: Math.min(episode.lastActiveAt, to),
    isOpen: watch.episode === episode,
    episode,
  };
}

function summarise(
  alerts: readonly BacktestAlert[],
  facts: Pick<BacktestReport, "fromMinute" | "toMinute" | "series" | "rows" | "events">,
): BacktestReport {
  const seriesDays = (facts.series * (facts.toMinute - facts.fromMinute)) / 1_440;
  const bySeverity = { warning: 0, error: 0, critical: 0 };
  for (const { episode } of alerts) bySeverity[episode.severity] += 1;
  return {
    ...facts,
    seriesDays,
    alerts,
    alertMinutes: alerts.reduce((sum, alert) => sum + alert.toMinute - alert.fromMinute, 0),
    alertsPerSeriesDay: seriesDays > 0 ? alerts.length / seriesDays : 0,
    bySeverity,
    newRules: alerts.filter(({ episode }) => episode.kind === "new-rule").length,
  };
}

/** The hour after an episode may still count its events in the longest window. */
const AFTERMATH_HOURS = 2;
/** The aftermath, the day after it, and the two hours that thresholds leave out. */
const DUE_HOURS = AFTERMATH_HOURS + 24 + 2;

/**
 * Returns a judge for episodes at the beginning of a record, where no series has a history: the following day
 * replaces the history. A burst that stays the only one was a spike; traffic that continues as it began was none.
 */
function createHindsight(watch: SeriesWatch, policy: SpikePolicy) {
  let due: Episode[] = [];
  const everyday = new Set<number>();

  function judge(episode: Episode, hour: number): boolean {
    const from = hourOf(episode) + AFTERMATH_HOURS;
    const isUnknownHour = (h: number) => h < from || policy.isUnknownHour?.(h) === true;
    const { threshold } = computeThresholds(watch.history, hour, { ...policy, isUnknownHour });
    return episode.peak < (threshold[WINDOWS.indexOf(episode.windowMinutes)] as number);
  }

  return {
    /** Judges a closed episode again once the day after it is known. */
    expect: (episode: Episode) => void due.push(episode),
    /** Call before a minute is taken. */
    reach(minute: number, onClosed: (episode: Episode) => void): void {
      for (let [first] = due; first !== undefined; [first] = due) {
        const hour = hourOf(first) + DUE_HOURS;
        if (minute < hour * 60) return;
        due = due.slice(1);
        passMinutes(watch, hour * 60, policy, onClosed);
        if (judge(first, hour)) everyday.add(first.openedAt);
      }
    },
    /**
     * Returns whether the day after the episode shows that it was everyday traffic. With less than a day, judges what
     * there is.
     */
    isEveryday(episode: Episode, endMinute: number): boolean {
      if (everyday.has(episode.openedAt)) return true;
      return due.includes(episode) && judge(episode, Math.floor(endMinute / 60) + 1);
    },
  };
}

function hourOf({ lastActiveAt }: Episode): number {
  return Math.floor(lastActiveAt / 60);
}

/** A spike that a person confirmed as an attack. Minutes since the epoch; times are the ends of minutes. */
export interface ConfirmedAttack {
  readonly openedAt: number;
  readonly lastActiveAt: number;
  readonly windowMinutes: number;
}

/**
 * Returns the hours that are removed from a rule's history and its record: from the beginning of the window that
 * opened the spike to the last hour in which a window ends that still counts some of the spike.
 */
export function toAttackHours(attacks: readonly ConfirmedAttack[]): ReadonlySet<number> {
  const hours = new Set<number>();
  for (const { openedAt, lastActiveAt, windowMinutes } of attacks) {
    const last = Math.floor((lastActiveAt + LONGEST_WINDOW - 2) / 60);
    for (let hour = Math.floor((openedAt - windowMinutes) / 60); hour <= last; hour += 1) hours.add(hour);
  }
  return hours;
}

const MAX_Z = 10;
const STEP = 0.5;
/** A smaller number of marks may be chance. */
const ENOUGH_MARKS = 3;

/**
 * Returns the smallest z, in steps of a half, at which at least half of the spikes marked as noise would not have
 * opened. Returns null if fewer than three were marked, or if no z helps. `scores` are those of the noise.
 */
export function suggestZ(scores: readonly number[], z: number): { z: number; silenced: number } | null {
  if (scores.length < ENOUGH_MARKS) return null;
  const sorted = scores.toSorted((a, b) => a - b);
  const middle = sorted[Math.ceil(sorted.length / 2) - 1] as number;
  // A window opens a spike from z on, so z must be above the window's score.
  const suggested = Math.max((Math.floor(middle / STEP) + 1) * STEP, z + STEP);
  if (suggested > MAX_Z) return null;
  return { z: suggested, silenced: sorted.filter((score) => score < suggested).length };
}
