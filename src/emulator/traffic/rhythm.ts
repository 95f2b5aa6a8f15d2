import { MINUTES_PER_DAY } from "#lib/units.ts";
import { createRandom } from "./random.ts";
import type { Rule } from "./rules.ts";

/** A rule has at most one burst per block of this many minutes. */
const BURST_BLOCK_MINUTES = 720;
const BURST_SHARE = 0.35;
/** Above this mean the normal quantile is used, because e^-mean would lose its digits. */
const NORMAL_FROM = 60;

const random = createRandom();

/** Returns the factor of a minute, with mean 1 over a day. The peak's hour differs between zones. */
function daily(minute: number, zoneId: number): number {
  const shift = (zoneId * 137) % 360;
  return 1 + 0.6 * Math.sin((2 * Math.PI * (minute - 540 - shift)) / MINUTES_PER_DAY);
}

interface Burst {
  readonly zoneKey: number;
  readonly block: number;
  readonly startsAt: number;
  readonly minutes: number;
  readonly factor: number;
}

/** The last burst of each rule: minutes are drawn in order, and a block has hundreds of them. */
const lastBursts: Burst[] = [];

function drawBurst(zoneKey: number, block: number, ruleIndex: number): Burst {
  random.reseed(zoneKey, block, ruleIndex, 0x62727374);
  if (random.fraction() >= BURST_SHARE) return { zoneKey, block, startsAt: 0, minutes: 0, factor: 1 };
  const startsAt = block * BURST_BLOCK_MINUTES + random.below(BURST_BLOCK_MINUTES - 60);
  const minutes = 5 + random.below(36);
  return { zoneKey, block, startsAt, minutes, factor: 2 + random.fraction() * 3 };
}

function burst(zoneKey: number, ruleIndex: number, minute: number): number {
  const block = Math.floor(minute / BURST_BLOCK_MINUTES);
  let last = lastBursts[ruleIndex];
  if (last?.zoneKey !== zoneKey || last.block !== block) {
    last = drawBurst(zoneKey, block, ruleIndex);
    lastBursts[ruleIndex] = last;
  }
  const { startsAt, minutes, factor } = last;
  return minute >= startsAt && minute < startsAt + minutes ? factor : 1;
}

/** Returns the logistic quantile, which is monotone and close enough to the normal one for counts. */
function normalQuantile(share: number): number {
  return Math.log(share / (1 - share)) / 1.702;
}

/** Returns the Poisson count at one quantile. With the same `share`, a larger mean never gives a smaller count. */
function poissonQuantile(mean: number, share: number): number {
  if (mean <= 0) return 0;
  if (mean > NORMAL_FROM) {
    const bounded = Math.min(Math.max(share, 1e-9), 1 - 1e-9);
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normalQuantile(bounded)));
  }
  let probability = Math.exp(-mean);
  let cumulated = probability;
  let count = 0;
  while (share > cumulated && count < 10 * NORMAL_FROM) {
    count++;
    probability *= mean / count;
    cumulated += probability;
  }
  return count;
}

/**
 * Returns how many events a rule has in one minute: a function of the zone's key, the rule and the absolute minute. A
 * higher rate adds events and keeps those of a lower one.
 */
export function countInMinute(
  zone: { id: number; key: number; eventsPerMinute: number },
  rule: Rule,
  ruleIndex: number,
  weightSum: number,
  minute: number,
): number {
  const steady =
    rule.weight === 0 ? rule.perDay / MINUTES_PER_DAY : (zone.eventsPerMinute * rule.weight) / weightSum;
  const rhythm = rule.weight === 0 ? 1 : daily(minute, zone.id) * burst(zone.key, ruleIndex, minute);
  random.reseed(zone.key, minute, ruleIndex, 0x636e74);
  return poissonQuantile(steady * rhythm, random.fraction());
}
