/** The thresholds of source series: computed ones and fixed lines. */
import type { SourceKind } from "#model/kinds.ts";
import { WINDOW_COUNT } from "../detection-settings.ts";
import { advanceHours, type HourHistory, slotOf } from "../thresholds/hour-history.ts";
import { computeThresholds, type Thresholds } from "../thresholds/thresholds.ts";
import type { Fire, Judging } from "./judge-sources.ts";
import { type BusyAddress, MOST_URLS } from "./source-counter.ts";

/** The number of deviations above the usual from which a series fires. */
export const SOURCE_Z: Readonly<Record<SourceKind, number>> = {
  rules_per_ip: 2.5,
  ips_per_ja4: 2.75,
  ips_per_url: 3.5,
  ips_per_ua: 3.5,
  ips_per_asn: 3.5,
};

/** How far the line lies above a habit, and from which count on nothing is a habit. */
const HABIT_FACTOR = 1.4;
const HABIT_CAP = 20;
const HABIT_DAYS = 7;
/** A habit is reached on three days of a week; while fewer than five days are known, on two. */
const HABIT_PLACE = 2;
const YOUNG_DAYS = 5;
const NEWEST_HOUR = 2;

export interface SourcePolicy {
  /** Added to the z of every series: the user's sensitivity. Default: 0. */
  readonly extraZ?: number;
  /** Returns whether some events of the hour may be missing. */
  readonly isUnknownHour?: (hour: number) => boolean;
}

/** Returns the count below which a series never fires, however quiet the zone is. Small campaigns have some thirty addresses. */
export function floorOf(kind: SourceKind): number {
  return kind === "rules_per_ip" ? 15 : 30;
}

/**
 * Returns the thresholds of a series for the minutes of an hour. It is the guard of the rules without the record and
 * the clumps, which are for events. `usual` is the expected largest count.
 */
export function computeSourceThresholds(
  kind: SourceKind,
  history: HourHistory,
  hour: number,
  { extraZ = 0, isUnknownHour = () => false }: SourcePolicy = {},
): Thresholds {
  const z = SOURCE_Z[kind] + extraZ;
  const floor = floorOf(kind);
  const found = computeThresholds(history, hour, { z, floor, isUnknownHour, isSteady: true });
  for (let i = 0; i < WINDOW_COUNT; i += 1) {
    found.usual[i] = Math.max(Math.exp(found.level[i] as number) - 1, 0);
    if (kind !== "rules_per_ip") continue;
    found.threshold[i] = Math.max(found.threshold[i] as number, habitOf(history, hour, i));
  }
  return found;
}

/**
 * Returns thresholds with fixed lines in place of the zone's own, which has no history. In an hour, a shared address of a busy
 * office triggers as many rules as a scanner in minutes, so the line of the hour is twice as high.
 */
export function atFloor(kind: SourceKind, thresholds: Thresholds): Thresholds {
  const floor = floorOf(kind);
  return { ...thresholds, threshold: Float64Array.of(floor, floor, 2 * floor) };
}

/**
 * Returns the count that addresses reach on three days of a week and more, plus two fifths. Its cap keeps a scan that
 * comes from another address every day from becoming usual.
 */
function habitOf(history: HourHistory, hour: number, window: number): number {
  advanceHours(history, hour);
  const newest = hour - NEWEST_HOUR;
  const days: number[] = [];
  for (let end = newest; end > newest - HABIT_DAYS * 24 && end >= history.firstHour; end -= 24) {
    let peak = 0;
    for (let h = end; h > end - 24 && h >= history.firstHour; h -= 1)
      peak = Math.max(peak, history.peaks[slotOf(h) * WINDOW_COUNT + window] as number);
    days.push(peak);
  }
  const place = days.length < YOUNG_DAYS ? HABIT_PLACE - 1 : HABIT_PLACE;
  const usual = days.sort((a, b) => b - a)[place] ?? 0;
  return Math.min(HABIT_CAP, HABIT_FACTOR * usual);
}

/** So many different rules of an unfamiliar address in one minute are enough, whatever is usual in the zone. */
const RULES_A_MINUTE = 12;
/** One request matches up to thirty rules. So many different URLs are more than a form that is posted, and posted again. */
const FEWEST_URLS = 3;
/** The share of the zone's own line of three minutes that such an address has to reach, too. */
const SHARE_OF_LINE = RULES_A_MINUTE / floorOf("rules_per_ip");
/**
 * So many events of one address in one minute are enough if they are of a few different rules and of many URLs: a broken
 * client repeats one request, and each of its requests may match several rules.
 */
const EVENTS_A_MINUTE = 100;
const FEWEST_RULES = 3;
/** How the score grows with the events: one deviation for every such part of their logarithm. */
const DEVIATION = 0.6;

/** Returns the addresses that reach a fixed line in a minute that was just closed. */
export function findBursts(minute: number, judging: Judging): Fire[] {
  const { counter, usualOf, thresholdsOf, isFirstDay } = judging;
  return counter.busiest(minute).flatMap((one): Fire[] => {
    // Thresholds take longer than counting, and most busy addresses need none.
    const hasRules =
      !isFirstDay &&
      one.rules >= RULES_A_MINUTE &&
      one.urls >= FEWEST_URLS &&
      usualOf(one.address) === undefined;
    const fire =
      (hasRules ? judgeRules(one, thresholdsOf("rules_per_ip")) : null) ?? judgeEvents(one, isFirstDay);
    if (fire === null) return [];
    const { address, events, rules } = one;
    const [members = 0] = counter.rulesOf(address, minute);
    const burst = { events, rules };
    // The shortest window holds the minute.
    return [
      { kind: "rules_per_ip", key: address, members, usualMembers: 0, windowMinutes: 3, burst, ...fire },
    ];
  });
}

type Line = Pick<Fire, "count" | "usual" | "threshold" | "score">;

function judgeRules({ rules }: BusyAddress, { threshold, level, deviation, usual }: Thresholds): Line | null {
  const line = Math.max(RULES_A_MINUTE, SHARE_OF_LINE * (threshold[0] as number));
  if (rules < line) return null;
  const score = (Math.log1p(rules) - (level[0] as number)) / (deviation[0] as number);
  return {
    count: rules,
    usual: usual[0] as number,
    threshold: line,
    score: Math.max(score, SOURCE_Z.rules_per_ip),
  };
}

/**
 * In its first day a zone has no usual, so many events of any rules are enough. Of few URLs, each request may match
 * all the rules.
 */
function judgeEvents({ events, rules, urls }: BusyAddress, isFirstDay: boolean): Line | null {
  if (events < EVENTS_A_MINUTE) return null;
  const isRepeated = urls < FEWEST_URLS && events < rules * EVENTS_A_MINUTE;
  if (isFirstDay ? isRepeated : rules < FEWEST_RULES || urls < MOST_URLS) return null;
  const score = SOURCE_Z.rules_per_ip + Math.log(events / EVENTS_A_MINUTE) / DEVIATION;
  return { count: events, usual: 0, threshold: EVENTS_A_MINUTE, score };
}

/** Returns whether most rules of an address may be those of one request, so that they say nothing about its sender. */
export function isOneRequest({ rules, urls }: BusyAddress, members: number): boolean {
  return urls < FEWEST_URLS && 2 * rules > members;
}

/** Returns whether an address has come halfway to a fixed line. */
export function isBusy({ events, rules }: BusyAddress): boolean {
  return 2 * events >= EVENTS_A_MINUTE || 2 * rules >= RULES_A_MINUTE;
}
