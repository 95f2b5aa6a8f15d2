import { createFractions, drawPoisson } from "../../detection/support/histories.ts";

const DAYS = 21;
const DAY = 1_440;
/** Earlier minutes are history and are not scored. */
export const SCORED_FROM = 7 * DAY;
const LENGTH = DAYS * DAY;
/** Least number of events of an attack: no rule can distinguish fewer from everyday traffic. */
const LEAST_ADDED = 10;

/** Minutes of the series, half-open. */
export interface Attack {
  readonly from: number;
  readonly to: number;
  readonly factor: number;
}

export interface SyntheticSeries {
  readonly name: string;
  /** Per minute. */
  readonly counts: Int32Array;
  readonly attacks: readonly Attack[];
}

type Fraction = () => number;

/** Events a minute. */
const SPARSE = 5 / 60;

const between = (fraction: Fraction, low: number, high: number) => low + (high - low) * fraction();
/** Every order of magnitude as likely as any other. */
const acrossScales = (fraction: Fraction, low: number, high: number) => low * (high / low) ** fraction();

function drawNormal(fraction: Fraction): number {
  return Math.sqrt(-2 * Math.log(1 - fraction())) * Math.cos(2 * Math.PI * fraction());
}

/** Mean 1 and variance 1 / shape (Marsaglia and Tsang). */
function drawGamma(shape: number, fraction: Fraction): number {
  if (shape < 1)
    return (drawGamma(shape + 1, fraction) * (shape + 1) * (1 - fraction()) ** (1 / shape)) / shape;
  const d = shape - 1 / 3;
  for (;;) {
    const x = drawNormal(fraction);
    const v = (1 + x / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(1 - fraction()) < x ** 2 / 2 + d - d * v + d * Math.log(v)) return (d * v) / shape;
  }
}

/**
 * One rule's traffic: from one event in twenty hours to two thousand an hour, over-dispersed minute by minute and hour
 * by hour. Most have a daily rhythm, a fifth have bursts by habit, some sparse ones scanners that come by, some a daily
 * job, a lasting change of level, or a late beginning. Two in three are attacked, up to five times in the last two weeks.
 */
export function drawSeries(seed: number, index: number): SyntheticSeries {
  const fraction = createFractions(seed * 1_000_003 + index);
  const rates = drawRates(fraction);
  const firstMinute = rates.findIndex((rate) => rate > 0);
  const attacks = drawAttacks(fraction, rates, firstMinute);
  for (const { from, to, added } of attacks)
    for (let minute = from; minute < to; minute += 1) rates[minute] = (rates[minute] as number) + added;
  const shape = acrossScales(fraction, 1, 20);
  const counts = Int32Array.from(rates, (rate) =>
    rate > 0 ? drawPoisson(rate * drawGamma(shape, fraction), fraction) : 0,
  );
  return { name: `rule-${index}`, counts, attacks };
}

/** Events per minute, expected. */
function drawRates(fraction: Fraction): Float64Array {
  const base = acrossScales(fraction, 0.05, 2_000) / 60;
  const amplitude = fraction() < 0.7 ? between(fraction, 0.2, 0.95) : 0;
  const phase = between(fraction, 0, DAY);
  const hourly = between(fraction, 0, 0.3);
  const begin = fraction() < 0.1 ? Math.floor(between(fraction, SCORED_FROM, 15 * DAY)) : 0;
  const shift = fraction() < 0.2 ? acrossScales(fraction, 0.3, 3) : 1;
  const shiftAt = between(fraction, SCORED_FROM, LENGTH);
  const rates = new Float64Array(LENGTH);
  let noise = 0;
  for (let minute = begin; minute < LENGTH; minute += 1) {
    // The mood of an hour carries over to the next by half.
    if (minute % 60 === 0) noise = 0.5 * noise + Math.sqrt(0.75) * drawNormal(fraction);
    const rhythm = 1 + amplitude * Math.sin((2 * Math.PI * (minute - phase)) / DAY);
    rates[minute] = base * rhythm * Math.exp(hourly * noise) * (minute >= shiftAt ? shift : 1);
  }
  addBursts(fraction, rates, begin);
  if (base < SPARSE && fraction() < 0.08) addVisits(fraction, rates, begin);
  return rates;
}

/** A sparse rule's habit: scanners that come by now and then and leave a heap of events. */
function addVisits(fraction: Fraction, rates: Float64Array, begin: number): void {
  const perDay = acrossScales(fraction, 0.3, 3);
  const size = acrossScales(fraction, 8, 60);
  for (let minute = begin; minute < LENGTH; minute += 1) {
    if (fraction() >= perDay / DAY) continue;
    const minutes = Math.ceil(between(fraction, 0, 8));
    const added = (size * Math.exp(0.4 * drawNormal(fraction))) / minutes;
    for (let end = Math.min(LENGTH, minute + minutes); minute < end; minute += 1)
      rates[minute] = (rates[minute] as number) + added;
  }
}

/** Harmless habits: bursts at any time, and jobs at the same minute of every day. */
function addBursts(fraction: Fraction, rates: Float64Array, begin: number): void {
  const perDay = fraction() < 0.2 ? acrossScales(fraction, 6, 48) : 0;
  const height = acrossScales(fraction, 1, 3);
  for (let minute = begin; minute < LENGTH; minute += 1) {
    if (fraction() >= perDay / DAY) continue;
    const end = Math.min(LENGTH, minute + Math.ceil(between(fraction, 1, 12)));
    const added = Math.max(rates[minute] as number, 0.05) * height * Math.exp(0.3 * drawNormal(fraction));
    for (; minute < end; minute += 1) rates[minute] = (rates[minute] as number) + added;
  }
  if (fraction() >= 0.1) return;
  const [at, minutes, added] = [
    Math.floor(between(fraction, 0, DAY)),
    between(fraction, 2, 30),
    acrossScales(fraction, 1, 30),
  ];
  for (let day = 0; day < DAYS; day += 1) {
    for (let minute = day * DAY + at; minute < day * DAY + at + minutes && minute < LENGTH; minute += 1)
      if (minute >= begin) rates[minute] = (rates[minute] as number) + added;
  }
}

function drawAttacks(fraction: Fraction, rates: Float64Array, begin: number): (Attack & { added: number })[] {
  const attacks: (Attack & { added: number })[] = [];
  const wanted = fraction() < 0.65 ? 1 + Math.floor(fraction() * 5) : 0;
  for (let attempt = 0; attacks.length < wanted && attempt < 50; attempt += 1) {
    const minutes = Math.round(acrossScales(fraction, 2, 360));
    const from = Math.floor(between(fraction, Math.max(begin, SCORED_FROM), LENGTH - minutes));
    const to = from + minutes;
    const factor = acrossScales(fraction, 2, 50);
    const usual = rates.subarray(from, to).reduce((sum, rate) => sum + rate, 0) / minutes;
    const added = (factor - 1) * Math.max(usual, 0.1);
    const isApart = attacks.every((other) => from > other.to + DAY || to + DAY < other.from);
    if (isApart && added * minutes >= LEAST_ADDED) attacks.push({ from, to, factor, added });
  }
  return attacks;
}
