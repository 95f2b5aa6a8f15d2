/** Plans the minutes of a tick, assesses the series of a rule in them, counts its senders and grades the spike. */

import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { keyOf, type SeriesKey } from "#model/fingerprint.ts";
import { isNoVisitor, MANY_ADDRESSES } from "#model/ip-address.ts";
import { type GradedBy, type SpikeSeverity, WINDOWS } from "#model/kinds.ts";
import { isGraver } from "#model/words.ts";
import { type ConfirmedAttack, toAttackHours } from "./backtest/backtest.ts";
import { LONGEST_WINDOW, type Sensitivity, WINDOW_COUNT } from "./detection-settings.ts";
import {
  type Episode,
  type Followed,
  type FollowedMinute,
  followSeries,
  gradeSeverity,
  type PastEpisode,
} from "./episode.ts";
import { toSourceAddress } from "./sources/source-event.ts";
import { HISTORY_HOURS, type Thresholds } from "./thresholds/thresholds.ts";
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

/** The thresholds of a series in one hour, and how old its rule is. */
interface KnownHour {
  readonly thresholds: Thresholds;
  /** The hour of the rule's first event. */
  readonly firstHour: number;
  /** False if the rule may have been seen in hours that are still missing: then no `new-rule` is opened. Default: true. */
  readonly canBeNew?: boolean | undefined;
}

/** Minutes of one series and the state of its spike. Minutes are numbered since the epoch. */
interface SeriesInput {
  /** Counts of consecutive minutes, from an hour before the first tested one. */
  readonly counts: ArrayLike<number>;
  readonly firstMinute: number;
  /** Closed minutes to judge, ascending; at least one. Judging a minute again takes late events into account. */
  readonly tested: readonly number[];
  /** The running minute; none if left out. */
  readonly running?: number;
  readonly episode: Episode | null;
  /** The first minute that the episode has not been judged for yet; ignored without an episode. */
  readonly firstUnjudged: number;
  /** Minutes before this belong to a closed spike. They neither open another spike nor count towards it. */
  readonly countFrom: number;
  readonly z: number;
  /** A minute of an hour of which nothing is known is skipped. */
  readonly knownOf: (hour: number) => KnownHour | undefined;
}

export interface SeriesOutcome {
  /** The episodes that ended, in the order of time. The first is the given one, if it is among them. */
  readonly past: readonly PastEpisode[];
  /** Null if no spike is open. */
  readonly episode: Episode | null;
  /** The end of the latest minute that the counts of the open episode include. */
  readonly countedTo: number;
  /**
   * Whether the zone is polled more often, because a window would reach its threshold by as much growth as in
   * the last two minutes. Half of the threshold alone is everyday traffic of a busy rule.
   */
  readonly isRising: boolean;
}

/**
 * Judges the tested minutes in order. Skipped minutes may have been active, so only those after them count as quiet. Judges the
 * running minute last. What it changes is judged again when it is over, because no minute but a tested one counts as judged.
 */
export function assessSeries(input: SeriesInput): SeriesOutcome {
  const { counts, firstMinute, tested, z, running } = input;
  const sums = new Int32Array(WINDOW_COUNT);
  const past: PastEpisode[] = [];
  const followed: Followed = { episode: input.episode, countFrom: input.countFrom, quietFrom: 0 };
  const follow = (one: Followed, minute: number, known: KnownHour, by: Partial<FollowedMinute>) => {
    const sumsFrom = (from: number) => windowSums(counts, minute - firstMinute, from - firstMinute, sums);
    const ended = followSeries(one, { minute, z, sumsFrom, ...known, ...by });
    if (ended !== null) past.push(ended);
    return ended;
  };
  let next = input.firstUnjudged;
  for (const minute of tested) {
    const known = input.knownOf(Math.floor(minute / 60));
    if (known === undefined || minute < followed.countFrom) continue;
    if (minute > next) followed.quietFrom = minute;
    // A minute that is judged again was quiet for the earlier judgement, too.
    follow(followed, minute, known, { isAgain: minute < next });
    next = Math.max(next, minute + 1);
  }
  const countedTo = (tested.at(-1) ?? 0) + 1;
  const known = running === undefined ? undefined : input.knownOf(Math.floor(running / 60));
  if (running === undefined || known === undefined)
    return { past, episode: followed.episode, countedTo, isRising: false };
  const grown = { ...followed };
  const hasWave = follow(grown, running, known, { isRunning: true }) !== null;
  const before = hasWave ? null : followed.episode;
  const countOf = (minute: number) => (minute < grown.countFrom ? 0 : (counts[minute - firstMinute] ?? 0));
  const growth = countOf(running) + countOf(running - 1) - countOf(running - 2) - countOf(running - 3);
  windowSums(counts, running - firstMinute, grown.countFrom - firstMinute, sums);
  const isRising =
    hasWave || known.thresholds.threshold.some((threshold, i) => (sums[i] ?? 0) + growth >= threshold);
  // The rest of the minute may make a spike of what looks like a new rule now.
  const isNews =
    before === null
      ? grown.episode?.kind === "spike"
      : grown.episode !== null && isGraver(grown.episode.severity, before.severity);
  return isNews
    ? { past, episode: grown.episode, countedTo: running + 1, isRising }
    : { past, episode: before, countedTo, isRising };
}

/**
 * Returns the events of the last 3, 15 and 60 minutes up to and including the one at `index`. Minutes before `from`
 * are left out, because an earlier spike of the series has already reported them.
 */
export function windowSums(
  counts: ArrayLike<number>,
  index: number,
  from = 0,
  out: Int32Array = new Int32Array(WINDOW_COUNT),
): Int32Array {
  let sum = 0;
  let next = index;
  for (const [i, width] of WINDOWS.entries()) {
    for (const oldest = Math.max(index - width + 1, from, 0); next >= oldest; next -= 1) {
      sum += counts[next] ?? 0;
    }
    out[i] = sum;
  }
  return out;
}

interface SpikeStrength {
  readonly score: number;
  readonly z: number;
  /** Different addresses in the window of the spike; null if they are not known. */
  readonly addresses: number | null;
  /** The severity of the spike so far, which is never lowered. */
  readonly before: SpikeSeverity | undefined;
}

/**
 * Returns the severity of a rule's spike, and the facts that decided it. A rule alone warns. It pages only if it is far
 * above the usual and many addresses send it: one broken client that repeats a request is one address, and who attacks
 * many rules is found by the source series.
 */
export function gradeSpike({ score, z, addresses, before }: SpikeStrength): {
  severity: SpikeSeverity;
  gradedBy: GradedBy;
} {
  const isFar = gradeSeverity(score, z) === "critical";
  const isFew = addresses !== null && addresses < MANY_ADDRESSES;
  const gradedBy = isFar ? (isFew ? "addresses" : "both") : "score";
  return { severity: before === "critical" || gradedBy === "both" ? "critical" : "warning", gradedBy };
}

/** Share of a rule's events that its main senders send together. */
const MAIN_SHARE = 0.8;

/** The addresses of a rule's events; both numbers are 0 if they are not known. */
interface Senders {
  readonly addresses: number;
  /** The fewest addresses that send four fifths of the events. */
  readonly main: number;
}

/**
 * Returns how many addresses send a rule's events, from the events of each IP address. A broken client hides among the few
 * events of others, so not only the different addresses are counted, but those that make the spike. If more than a fifth of
 * the events have an address that is no visitor's, such as `0.0.0.0`, the addresses are not known.
 */
export function countSenders(found: readonly { readonly ip: string; readonly events: number }[]): Senders {
  const byAddress = new Map<string, number>();
  let all = 0;
  for (const { ip, events } of found) {
    all += events;
    if (isNoVisitor(ip)) continue;
    const address = toSourceAddress(ip);
    byAddress.set(address, (byAddress.get(address) ?? 0) + events);
  }
  const counts = [...byAddress.values()].sort((a, b) => b - a);
  const known = counts.reduce((sum, count) => sum + count, 0);
  if (known < MAIN_SHARE * all) return { addresses: 0, main: 0 };
  const wanted = MAIN_SHARE * known;
  let [main, sum] = [0, 0];
  for (; main < counts.length && sum < wanted; main += 1) sum += counts[main] as number;
  return { addresses: counts.length, main };
}
