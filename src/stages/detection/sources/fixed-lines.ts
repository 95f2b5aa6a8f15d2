import type { Thresholds } from "../thresholds/thresholds.ts";
import type { Fire, Judging } from "./judge-sources.ts";
import { type BusyAddress, MOST_URLS } from "./source-counter.ts";
import { floorOf, SOURCE_Z } from "./source-thresholds.ts";

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
