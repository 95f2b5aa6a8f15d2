import { HISTORY_HOURS, profileHours, type WeekOfHours } from "./hour-profile.ts";
import { judgeSilence } from "./judge-silence.ts";
import { createZoneLevel, LEVEL_MINUTES, type LevelOf } from "./zone-level.ts";

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
    const levelOf: LevelOf = (quiet) => {
      level ??= createZoneLevel({
        ...week(zone, Math.floor(through / 60) - 1),
        through,
        countAt: (minute) => recent.get(minute) ?? 0,
      });
      return level(quiet);
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
