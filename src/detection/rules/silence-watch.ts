/** Finds rules that fell silent. */

export const HISTORY_HOURS = 168;

/** The events of a rule or a zone in the hours of a week. Unknown hours are left out of everything. */
interface WeekOfHours {
  /** The last of the hours, since the epoch. */
  readonly lastHour: number;
  readonly countOf: (hour: number) => number;
  readonly isUnknownHour: (hour: number) => boolean;
}

/** Profile of each hour of the day by a week, from the first hour with events on. */
interface HourProfile {
  /** Events to expect in this hour. */
  readonly expectedAt: (hour: number) => number;
  /** Mean and variance of the hourly counts, and the number of known hours. */
  readonly mean: number;
  readonly variance: number;
  readonly known: number;
}

/**
 * Expects in an hour the mean of its time of day, and to half of the two hours beside it, so that no event that came at
 * five past is missed at five to.
 */
export function profileHours({ lastHour, countOf, isUnknownHour }: WeekOfHours): HourProfile {
  const sums = new Float64Array(24);
  const weights = new Float64Array(24);
  const add = (hour: number, count: number, weight: number) => {
    const at = ((hour % 24) + 24) % 24;
    sums[at] = (sums[at] as number) + count * weight;
    weights[at] = (weights[at] as number) + weight;
  };
  let [total, squares, known] = [0, 0, 0];
  for (let hour = lastHour - HISTORY_HOURS + 1; hour <= lastHour; hour += 1) {
    if (isUnknownHour(hour)) continue;
    const count = countOf(hour);
    if (total + count === 0) continue;
    add(hour, count, 1);
    add(hour - 1, count, 0.5);
    add(hour + 1, count, 0.5);
    total += count;
    squares += count * count;
    known += 1;
  }
  const mean = known === 0 ? 0 : total / known;
  const variance = known === 0 ? 0 : squares / known - mean * mean;
  const expectedAt = (hour: number) => {
    const at = ((hour % 24) + 24) % 24;
    const weight = weights[at] as number;
    return weight === 0 ? 0 : (sums[at] as number) / weight;
  };
  return { expectedAt, mean, variance, known };
}

/** Long enough to hold events of a zone with few, and short enough to see its silence soon. */
export const LEVEL_MINUTES = 30;

/** A zone's hours, and its newest minutes. */
interface ZoneCounts extends WeekOfHours {
  /** The end of the known minutes, since the epoch. */
  readonly through: number;
  /** The events of a minute of the last `LEVEL_MINUTES` before `through`. */
  readonly countAt: (minute: number) => number;
}

/** A rule without events for some minutes, of which `usual` were to be expected in the hour. */
interface SilentHour {
  readonly hour: number;
  readonly usual: number;
  readonly silentMinutes: number;
}

/** Returns the zone's events in an hour as a share of what is usual without this rule, at most 1. */
export type LevelOf = (silent: SilentHour) => number;

/**
 * Returns the function for a zone. A silent rule has no part in the zone's events, so it has none in what is usual. Of
 * the open hour the last half hour counts, because only what is over is known; of a rule that is silent for less, only the
 * minutes since, because a zone that falls silent does so with all of its rules at once.
 */
export function createZoneLevel({ through, countAt, ...week }: ZoneCounts): LevelOf {
  const { expectedAt } = profileHours(week);
  const openHour = Math.floor(through / 60);
  return ({ hour, usual, silentMinutes }) => {
    let [count, expected] = [week.countOf(hour), expectedAt(hour)];
    if (hour === openHour) {
      const from = through - Math.min(silentMinutes, LEVEL_MINUTES);
      [count, expected] = [0, 0];
      for (let minute = from; minute < through; minute += 1) {
        count += countAt(minute);
        expected += expectedAt(Math.floor(minute / 60)) / 60;
      }
      [count, expected] = [(count * 60) / (through - from), (expected * 60) / (through - from)];
    }
    return expected > usual ? Math.min(1, count / (expected - usual)) : 0;
  };
}

/** Negative logarithm of the probability of no event. */
const PROOF = 12;
/** Rules with fewer events a day come in sessions that leave hours without any. */
const LEAST_PER_DAY = 50;
const LEAST_KNOWN_HOURS = 96;
/** A rule with fewer events in a week cannot be silent. */
export const LEAST_EVENTS = (LEAST_PER_DAY * LEAST_KNOWN_HOURS) / 24;
/** Copying an event and counting it takes a while. */
export const LEAST_SILENT_MINUTES = 5;
/** Longer ago no alert is of use. It is also the most hours that a judgement adds up. */
const LONGEST_HOURS = 168;
/** Fewer missing events prove nothing, however regular the rule is. */
export const LEAST_MISSING = PROOF;
/** The dispersion of the hourly counts: 0.05 is a rule of few bursts, 50 is nearly regular. */
const [LEAST_KAPPA, MOST_KAPPA] = [0.05, 50];

/** A rule without events since a minute, and its zone. */
interface Gap {
  /** The rule's week up to the hour of its last event. */
  readonly profile: HourProfile;
  /** The minute of its last event, and the end of the minutes that are known; since the epoch. */
  readonly lastMinute: number;
  readonly through: number;
  readonly isUnknownHour: (hour: number) => boolean;
  readonly levelOf: LevelOf;
}

/**
 * Returns the events that are missing since the rule's last one, if their absence is no chance; null otherwise. Events of
 * a rule come in heaps, so their hourly counts are taken as negative binomial: a Poisson distribution would call every
 * evening with few events a silence. Hours that are not known add nothing, and hours in which the whole zone has few add little.
 */
export function judgeSilence(gap: Gap): number | null {
  const { profile, lastMinute, through, isUnknownHour, levelOf } = gap;
  const isBusy = profile.known >= LEAST_KNOWN_HOURS && profile.mean * 24 >= LEAST_PER_DAY;
  if (!isBusy || through - lastMinute < LEAST_SILENT_MINUTES) return null;
  const [firstHour, openHour] = [Math.floor(lastMinute / 60), Math.floor(through / 60)];
  if (openHour - firstHour > LONGEST_HOURS) return null;
  let [missing, hours] = [0, 0];
  for (let hour = firstHour; hour <= openHour; hour += 1) {
    if (hour !== openHour && isUnknownHour(hour)) continue;
    const share = (Math.min((hour + 1) * 60, through) - Math.max(hour * 60, lastMinute + 1)) / 60;
    if (share <= 0) continue;
    const usual = profile.expectedAt(hour);
    const level = (at: number) => levelOf({ hour: at, usual, silentMinutes: through - lastMinute - 1 });
    // Whether the zone was as busy after the rule's last event as before, the next hour says.
    const isFirst = hour === firstHour && hour < openHour;
    missing += share * usual * (isFirst ? Math.min(level(hour), level(hour + 1)) : level(hour));
    hours += share;
  }
  if (missing < LEAST_MISSING) return null;
  const excess = profile.variance - profile.mean;
  const ratio = excess <= 0 ? MOST_KAPPA : profile.mean ** 2 / excess;
  const shape = Math.min(Math.max(ratio, LEAST_KAPPA), MOST_KAPPA) * Math.max(1, hours);
  return shape * Math.log1p(missing / shape) >= PROOF ? missing : null;
}

/** A silence is judged so often, as by the job's tick. */
const JUDGE_EVERY_MINUTES = 5;
/** A week before the last event, and a week of silence. */
const KEPT_HOURS = 2 * HISTORY_HOURS;

/** A rule that fell silent, or has events again. */
export interface SilenceChange {
  readonly ruleId: string;
  /** The minute of the last event before the silence. */
  readonly since: number;
  /** Null when the rule has events again. */
  readonly expected: number | null;
}

interface WatchedRule {
  readonly hours: HourCounts;
  lastMinute: number;
  silentSince: number | null;
  /** Made at the first judgement after an event. */
  profile: ReturnType<typeof profileHours> | null;
}

/**
 * Watches which rules of one zone fall silent, minute by minute, as the job does over stored rows. Hours for which
 * `isUnknownHour` are left out. A rule keeps two weeks of hours, and is forgotten after a week without events.
 */
export function createSilenceWatch(isUnknownHour: (hour: number) => boolean = () => false) {
  const rules = new Map<string, WatchedRule>();
  const zone: HourCounts = new Map();
  const recent = new Map<number, number>();
  let firstMinute: number | null = null;

  /** Takes the events of a minute by rule, in the order of time; a minute without events may be left out. */
  function take(minute: number, counts: ReadonlyMap<string, number>): SilenceChange[] {
    const changes: SilenceChange[] = [];
    firstMinute ??= minute;
    let total = 0;
    for (const [ruleId, events] of counts) {
      total += events;
      const rule = rules.get(ruleId) ?? { ...NEW, hours: new Map<number, number>() };
      rules.set(ruleId, rule);
      if (rule.silentSince !== null) changes.push({ ruleId, since: rule.silentSince, expected: null });
      count(rule.hours, Math.floor(minute / 60), events);
      Object.assign(rule, { lastMinute: minute, silentSince: null, profile: null });
    }
    count(zone, Math.floor(minute / 60), total);
    recent.set(minute, total);
    if ((minute + 1) % JUDGE_EVERY_MINUTES === 0) changes.push(...judge(minute + 1));
    return changes;
  }

  function judge(through: number): SilenceChange[] {
    const isUnknown = (hour: number) => hour * 60 < (firstMinute ?? 0) || isUnknownHour(hour);
    for (const minute of recent.keys()) if (minute < through - LEVEL_MINUTES) recent.delete(minute);
    const week = (hours: HourCounts, lastHour: number): WeekOfHours => ({
      lastHour,
      countOf: (hour) => hours.get(hour) ?? 0,
      isUnknownHour: isUnknown,
    });
    let level: LevelOf | null = null;
    const levelOf: LevelOf = (silent) => {
      level ??= createZoneLevel({
        ...week(zone, Math.floor(through / 60) - 1),
        through,
        countAt: (minute) => recent.get(minute) ?? 0,
      });
      return level(silent);
    };
    return [...rules].flatMap(([ruleId, rule]) => {
      const { lastMinute, silentSince, hours } = rule;
      if (through - lastMinute > HISTORY_HOURS * 60) rules.delete(ruleId);
      if (silentSince !== null) return [];
      rule.profile ??= profileHours(week(hours, Math.floor(lastMinute / 60)));
      const gap = { profile: rule.profile, lastMinute, through, isUnknownHour: isUnknown, levelOf };
      const expected = judgeSilence(gap);
      if (expected === null) return [];
      rule.silentSince = lastMinute;
      return [{ ruleId, since: lastMinute, expected }];
    });
  }

  return { take };
}

const NEW = { lastMinute: 0, silentSince: null, profile: null };

/** Counts by hour since the epoch, the oldest first, of which the newest are kept. */
type HourCounts = Map<number, number>;

function count(hours: HourCounts, hour: number, events: number): void {
  hours.set(hour, (hours.get(hour) ?? 0) + events);
  for (const old of hours.keys()) {
    if (old > hour - KEPT_HOURS) break;
    hours.delete(old);
  }
}
