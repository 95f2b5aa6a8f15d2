import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { keyOf, type SeriesKey } from "#model/fingerprint.ts";
import { type ConfirmedAttack, toAttackHours } from "./backtest/backtest.ts";
import { LONGEST_WINDOW, type Sensitivity } from "./detection-settings.ts";
import { HISTORY_HOURS } from "./thresholds/thresholds.ts";
import { viewZone, type ZoneHour, type ZoneView } from "./zone-view.ts";

/**
 * How many minutes a tick judges. Covers the changes by late events and the minutes of a short pause. An older minute
 * opens no spike, so a first start or a restart does not notify of yesterday.
 */
export const TESTED_MINUTES = 15;

/** The times that a tick judges: closed minutes, and what the running one has so far. Minutes are numbered since the epoch. */
export interface TickSpan {
  readonly nowMs: number;
  readonly firstTested: number;
  /** The running minute: the first one that is not over. */
  readonly endMinute: number;
  /** The first minute of any window that ends in a tested minute. */
  readonly firstMinute: number;
  /** Hours that begin at or before this do not matter. */
  readonly oldestMs: number;
  /** Hours before this are history for every tested minute. */
  readonly settledMs: number;
}

export function spanOfTick(nowMs: number): TickSpan {
  const endMinute = Math.floor(nowMs / MINUTE_MS);
  const firstTested = endMinute - TESTED_MINUTES;
  return {
    nowMs,
    firstTested,
    endMinute,
    firstMinute: firstTested - LONGEST_WINDOW + 1,
    oldestMs: nowMs - (HISTORY_HOURS + 2) * HOUR_MS,
    settledMs: (Math.floor(firstTested / 60) - 1) * HOUR_MS,
  };
}

/** The rows read for a tick. `Row` is an open spike. */
export interface TickInput<Row extends SeriesKey> {
  readonly active: readonly (SeriesKey & { minutes: readonly number[]; counts: readonly number[] })[];
  readonly open: readonly Row[];
  /** Latest closing of series whose spike closed within the span. */
  readonly closings: readonly (SeriesKey & { closedAtMs: number })[];
  /** Series whose history is being recounted. */
  readonly stale: readonly SeriesKey[];
  readonly covered: readonly (ZoneHour & { zoneId: number })[];
  /** Confirmed attacks, which are removed from the history. */
  readonly attacks: readonly (SeriesKey & ConfirmedAttack)[];
  readonly sensitivityOf: (zoneId: number, ruleId: string) => Sensitivity;
}

/** A series to judge at this tick. */
export interface Candidate<Row extends SeriesKey> extends SeriesKey {
  /** Counts by minute, beginning with the span's first minute. */
  readonly counts: Int32Array;
  readonly tested: readonly number[];
  /** The running minute. */
  readonly running: number;
  /** The hours of these minutes. */
  readonly testedHours: readonly number[];
  /** Events of minutes before this belong to a closed spike, so a new spike does not count them. */
  readonly countFrom: number;
  readonly row: Row | undefined;
  readonly z: number;
  readonly floor: number;
  /** Identifies the known hours of the history: changes when they do. */
  readonly fingerprint: string;
  readonly isUnknownHour: (hour: number) => boolean;
  readonly canBeNew: boolean;
}

/**
 * Returns the series that may open, update or close a spike. Skips the series of a zone whose history is still being
 * fetched, and those whose old hours are being recounted: a part of the events would otherwise count as all of them.
 */
export function planTick<Row extends SeriesKey>(span: TickSpan, input: TickInput<Row>): Candidate<Row>[] {
  const rows = new Map(input.open.map((row) => [keyOf(row), row]));
  const active = new Map(input.active.map((one) => [keyOf(one), one]));
  const countFrom = new Map(input.closings.map((one) => [keyOf(one), Math.ceil(one.closedAtMs / MINUTE_MS)]));
  const stale = new Set(input.stale.map(keyOf));
  const covered = Map.groupBy(input.covered, ({ zoneId }) => zoneId);
  const attacks = Map.groupBy(input.attacks, keyOf);
  const views = new Map<number, ReturnType<typeof viewTested>>();

  const candidates: Candidate<Row>[] = [];
  for (const [key, { zoneId, ruleId }] of new Map<string, SeriesKey>([...rows, ...active])) {
    const viewed = views.get(zoneId) ?? viewTested(span, covered.get(zoneId) ?? []);
    views.set(zoneId, viewed);
    const { view, ...minutes } = viewed;
    if (!view.isReady || minutes.tested.length === 0 || stale.has(key)) continue;
    candidates.push({
      zoneId,
      ruleId,
      counts: spread(span, active.get(key)),
      countFrom: countFrom.get(key) ?? 0,
      row: rows.get(key),
      ...input.sensitivityOf(zoneId, ruleId),
      ...minutes,
      canBeNew: view.canShowNewRules,
      ...withoutAttacks(view, attacks.get(key)),
    });
  }
  return candidates;
}

/** Returns what is known of a series' history without the hours of confirmed attacks. */
export function withoutAttacks(view: ZoneView, attacks: readonly ConfirmedAttack[] = []) {
  const { fingerprint, isUnknownHour } = view;
  if (attacks.length === 0) return { fingerprint, isUnknownHour };
  const left = toAttackHours(attacks);
  return {
    fingerprint: `${fingerprint}-${[...left].join()}`,
    isUnknownHour: (hour: number) => left.has(hour) || isUnknownHour(hour),
  };
}

function viewTested({ nowMs, firstTested, endMinute }: TickSpan, hours: readonly ZoneHour[]) {
  const view = viewZone(hours, nowMs);
  const minutes = Array.from({ length: endMinute - firstTested }, (_, i) => firstTested + i);
  const tested = minutes.filter(view.isTestable);
  const testedHours = [...new Set([...tested, endMinute].map((minute) => Math.floor(minute / 60)))];
  return { view, tested, running: endMinute, testedHours };
}

/** Returns the minutes [from, through) that a tick judges of a zone; null if it judges none, or some with a pause in between. */
export function spanTested(
  span: TickSpan,
  hours: readonly ZoneHour[],
): { readonly from: number; readonly through: number } | null {
  const { view, tested } = viewTested(span, hours);
  const [from, last] = [tested[0], tested.at(-1)];
  if (!view.isReady || from === undefined || last === undefined) return null;
  return last - from + 1 === tested.length ? { from, through: last + 1 } : null;
}

/** Returns the counts by minute, from the first minute to the end minute. */
export function spread(
  { firstMinute, endMinute }: Pick<TickSpan, "firstMinute" | "endMinute">,
  found: { minutes: readonly number[]; counts: readonly number[] } | undefined,
): Int32Array {
  const counts = new Int32Array(endMinute + 1 - firstMinute);
  for (const [i, minute] of found?.minutes.entries() ?? [])
    counts[minute - firstMinute] = found?.counts[i] ?? 0;
  return counts;
}
