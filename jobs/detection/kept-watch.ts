import type { StoredSourceEvent } from "#db/detection/source-events.ts";
import type { AddressPeaks, CountedSourceHour } from "#db/detection/source-hours.ts";
import { WINDOW_COUNT } from "#detection/rules/detection-settings.ts";
import type { FiredMinute } from "#detection/rules/sources/judge-sources.ts";
import { ofEachKind } from "#detection/rules/sources/source-counter.ts";
import { createSourceWatch, type SourceWatch } from "#detection/rules/sources/source-watch.ts";
import { createUsualRules, type UsualRules } from "#detection/rules/sources/usual-rules.ts";
import {
  createHourHistory,
  type HourHistory,
  putHour,
  slotOf,
} from "#detection/rules/thresholds/hour-history.ts";
import { inTurns } from "#lib/waiting.ts";
import { SOURCE_KINDS, type SourceKind } from "#model/kinds.ts";
import type { KnownSources } from "#model/known-source.ts";
import { isLearning } from "#model/rules.ts";
import type { CountedHours, HourPolicy } from "./count-source-hours.ts";

/** Minutes of which the numbers of taken events are kept: an hour and the windows that reach into it. */
const KEPT_MINUTES = 4 * 60;

/**
 * The watch of one zone between two ticks. It counts each event once and remembers the hours that it has counted. It
 * can be made again from rows at any time.
 */
export interface KeptWatch {
  readonly zoneId: number;
  readonly watch: SourceWatch;
  readonly known: KnownSources;
  readonly histories: Readonly<Record<SourceKind, HourHistory>>;
  /** The hours that are counted, by this watch or in the database. */
  readonly counted: Set<number>;
  /** The first hour that this watch has counted together with the hour before it, into which its windows reach. */
  readonly firstWhole: number;
  /** The next minute to read. */
  next: number;
  /** The first minute from which on every one was judged, by this watch or another replica. */
  judgedFrom: number;
  /** The events that the watch has taken, by minute. */
  readonly taken: Map<number, number>;
  /** Hours that the watch has counted to their end and that are not stored. */
  ended: number[];
  /** Hours before `next` that have to be counted from their events once these are all there. */
  lacking: readonly number[];
  /** The day of `usual`; null if it has to be read. */
  usualDay: number | null;
  usual: UsualRules;
  /** The largest counts of addresses on days, since the last hour was stored. */
  remembered: Map<string, AddressPeaks>;
  /** The version of the hours that are loaded, and the hour in which it was read. */
  version: { readonly text: string; readonly readIn: number };
  policy: HourPolicy;
}

/** Makes the watch of a zone, whose first minute is `next`. */
export function createKeptWatch(
  zoneId: number,
  given: Pick<KeptWatch, "next" | "known" | "policy" | "version">,
  hours: CountedHours,
): KeptWatch {
  const { next } = given;
  const memory = {
    histories: ofEachKind(createHourHistory),
    usual: {
      note: (address: string, day: number, peaks: ArrayLike<number>) => remember(one, address, day, peaks),
      usualOn: (day: number) => one.usual.usualOn(day),
    },
    firstMinute: hours.firstMinute,
    nextMinute: next,
  };
  const one: KeptWatch = {
    ...given,
    zoneId,
    watch: createSourceWatch({ isUnknownHour: (hour) => isUnusable(one, hour) }, memory),
    histories: memory.histories,
    counted: new Set(),
    firstWhole: Math.ceil(next / 60) + 1,
    judgedFrom: next,
    taken: new Map(),
    ended: [],
    lacking: [],
    usualDay: null,
    usual: createUsualRules(),
    remembered: new Map(),
  };
  learnHours(one, hours);
  return one;
}

function isUnusable({ policy, counted }: KeptWatch, hour: number): boolean {
  return policy.isUnknownHour(hour) || policy.attackHours.has(hour) || !counted.has(hour);
}

/** Replaces the hours of the history by the stored ones. */
export function learnHours(one: KeptWatch, { hours, missing, unknown, firstMinute }: CountedHours): void {
  for (const [place, kind] of SOURCE_KINDS.entries()) {
    const history = one.histories[kind];
    for (const { hour, peaks } of hours) putHour(history, hour, 0, peaks ?? [], place * WINDOW_COUNT);
    history.firstHour = hours[0]?.hour ?? Math.floor((firstMinute ?? one.next) / 60);
  }
  for (const { hour } of hours) one.counted.add(hour);
  one.lacking = [...unknown, ...missing.filter((hour) => !one.counted.has(hour))];
  one.watch.forgetThresholds();
}

/** Uses another policy for the hours from now on. */
export function applyPolicy(one: KeptWatch, policy: HourPolicy): void {
  if (one.policy.fingerprint === policy.fingerprint) return;
  one.policy = policy;
  // A mark of an attack has changed what is usual for an address.
  one.usualDay = null;
  one.watch.forgetThresholds();
}

function remember(
  { remembered, zoneId }: KeptWatch,
  address: string,
  day: number,
  peaks: ArrayLike<number>,
): void {
  const key = `${day} ${address}`;
  const before = remembered.get(key)?.peaks ?? [];
  const largest = Array.from(peaks, (count, i) => Math.max(count, before[i] ?? 0));
  remembered.set(key, { zoneId, day, address, peaks: largest });
}

/** Takes events in the order of time. Returns the minutes in which keys fired. */
export function takeEvents(
  one: KeptWatch,
  events: readonly StoredSourceEvent[],
  { judgeFrom, isCut }: { judgeFrom: number; isCut: boolean },
): FiredMinute[] {
  const fired: FiredMinute[] = [];
  for (const event of events) {
    const { minute } = event;
    if (minute > one.next) fired.push(...closeUntil(one, minute, judgeFrom));
    if (!one.known.isKnown(event)) one.watch.take(event, minute);
    // A flood was read in part only. Its number of events does not show late ones.
    one.taken.set(minute, isCut ? Number.POSITIVE_INFINITY : (one.taken.get(minute) ?? 0) + 1);
  }
  return fired;
}

/**
 * Returns the keys that reach their lines by the events of the running minute; null without any. The events are taken again
 * when the minute is over: to count a member twice in a minute changes nothing.
 */
export async function judgeRunningMinute(
  { watch, known }: KeptWatch,
  events: readonly StoredSourceEvent[],
  minute: number,
): Promise<FiredMinute | null> {
  for await (const part of inTurns(events))
    for (const event of part) if (!known.isKnown(event)) watch.take(event, minute);
  return events.length === 0 ? null : watch.judgeRunning(minute);
}

/** Closes the minutes before `through`. Those before `judgeFrom` are counted and not judged. */
export function closeUntil(one: KeptWatch, through: number, judgeFrom: number): FiredMinute[] {
  const fired = one.watch.closeUntil(through, judgeFrom);
  for (let hour = Math.floor(one.next / 60); (hour + 1) * 60 <= through; hour += 1) {
    if (hour < one.firstWhole) {
      if (!one.counted.has(hour)) one.lacking = [...one.lacking, hour];
      continue;
    }
    one.ended.push(hour);
    one.counted.add(hour);
  }
  one.next = Math.max(one.next, through);
  return fired;
}

/** Returns the hours that the watch has counted and that may be stored. Forgets them, and what is older than any use. */
export function takeEndedHours(one: KeptWatch): EndedHours {
  const isStorable = (hour: number) => !one.policy.isUnknownHour(hour);
  const hours = one.ended.filter(isStorable).map((hour) => ({
    zoneId: one.zoneId,
    hour,
    known: one.known.fingerprint,
    peaks: SOURCE_KINDS.flatMap((kind) => {
      const slot = slotOf(hour) * WINDOW_COUNT;
      return [...one.histories[kind].peaks.subarray(slot, slot + WINDOW_COUNT)];
    }),
    isJudged: one.judgedFrom <= hour * 60,
    events: countTaken(one, hour),
    eventsBefore: countTaken(one, hour - 1),
  }));
  one.ended = one.ended.filter((hour) => !isStorable(hour) && hour * 60 > one.next - KEPT_MINUTES);
  const isAttacked = [...one.policy.attackHours].some((hour) => hours.some((ended) => ended.hour === hour));
  const addresses = hours.length === 0 || isAttacked ? [] : [...one.remembered.values()];
  if (hours.length > 0) one.remembered.clear();
  for (const minute of one.taken.keys()) if (minute < one.next - KEPT_MINUTES) one.taken.delete(minute);
  return { hours, addresses };
}

export interface EndedHours {
  readonly hours: readonly (Omit<CountedSourceHour, "marks"> & {
    readonly isJudged: boolean;
    /** The events of the hour, and of the hour before, that the watch has taken. */
    readonly events: number;
    readonly eventsBefore: number;
  })[];
  readonly addresses: readonly AddressPeaks[];
}

function countTaken({ taken }: KeptWatch, hour: number): number {
  let sum = 0;
  for (let minute = hour * 60; minute < (hour + 1) * 60; minute += 1) sum += taken.get(minute) ?? 0;
  return sum;
}

/** Returns whether hours have to be counted from their events, all of which are there. */
export function isLacking({ lacking, policy }: KeptWatch): boolean {
  return lacking.some((hour) => !policy.isUnknownHour(hour));
}

/** Returns whether the watch judges by fixed lines only, because the zone seems to be in its first day. */
export function isInFirstDay({ watch, next }: KeptWatch): boolean {
  return isLearning(watch.firstMinute(), next);
}

/** Returns whether more events of a minute that was read are counted than the watch has taken. */
export function hasLateEvents(
  { taken, next }: KeptWatch,
  totals: ReadonlyMap<number, number> = new Map(),
): boolean {
  return [...totals].some(([minute, total]) => minute < next && total > (taken.get(minute) ?? 0));
}
