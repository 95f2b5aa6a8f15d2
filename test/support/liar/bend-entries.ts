import { hash } from "node:crypto";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { falsifyEntry } from "./falsify-entry.ts";
import type { ActiveLie, Dimension, LieKind } from "./lie.ts";

interface Entry {
  readonly logId: string;
  readonly timestamp: number;
}

/** One line of an answer. */
export interface Told<E extends Entry> {
  /** The true entry from which the line is made. */
  readonly of: E;
  /** The entry as the answer shows it: the true one, a copy with false values, or an invented one. */
  readonly entry: E;
  /** The time that the answer gives. */
  readonly timestamp: number;
  /** True if the event appears once, with its own log id and time. */
  readonly isTrue: boolean;
  /** The dimensions whose values are false. */
  readonly falseFields: readonly Dimension[];
}

export interface BentEntries<E extends Entry> {
  readonly told: readonly Told<E>[];
  /** Entries that the answer leaves out, shows twice, with another time or with false values, or adds a phantom to. */
  readonly changed: readonly E[];
}

/** The requested window, half-open. The emulator's `now` limits shifted times. */
export interface Window {
  readonly from: number;
  readonly to: number;
  readonly now: number;
  /** The number of buckets of a grouped search. */
  readonly buckets?: number;
}

/** The kinds that change single entries, on every route. */
const BENDING: ReadonlySet<LieKind> = new Set([
  "empty",
  "short",
  "rounded",
  "shifted",
  "doubled",
  "outOfWindow",
  "phantom",
  "wrongValue",
  "forgets",
  "endInclusive",
] satisfies LieKind[]);
/** The kinds that add something to a search, or change no search. */
const HARMLESS: ReadonlySet<LieKind> = new Set([
  "phantom",
  "endInclusive",
  "grows",
  "repeats",
  "unreadable",
] satisfies LieKind[]);

/**
 * Returns whether a lie affects this event: a function of the lie's salt and the log id, and for a lie with a `count`
 * also of the events before.
 */
export function isChosen(lie: ActiveLie, { logId, timestamp }: Entry): boolean {
  const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = lie.events ?? {};
  if (timestamp < from || timestamp >= to) return false;
  const { kind, salt = "", count, chosen } = lie;
  const share = kind === "empty" ? 1 : (lie.share ?? 1);
  if (share < 1 && Number.parseInt(hash("sha1", salt + logId).slice(0, 8), 16) / 2 ** 32 >= share)
    return false;
  if (count === undefined || chosen.has(logId)) return true;
  if (chosen.size >= count) return false;
  chosen.add(logId);
  return true;
}

/** Returns whether the lie changes entries of answers, and this one. */
export function isBending(lie: ActiveLie, entry: Entry): boolean {
  return BENDING.has(lie.kind) && isChosen(lie, entry);
}

/** Returns whether the lie may keep a search from finding the event as it is. */
export function isHiding(lie: ActiveLie, event: Entry, now: number): boolean {
  if (lie.kind === "foreign" || lie.kind === "refuses") return true;
  if (HARMLESS.has(lie.kind) || !isChosen(lie, event)) return false;
  return lie.kind !== "forgets" || isForgotten(lie, event.timestamp, now);
}

/** Applies all the lies to true entries. Entries whose changed time lies outside the window are left out. */
export function bendEntries<E extends Entry>(
  entries: readonly E[],
  lies: readonly ActiveLie[],
  window: Window,
): BentEntries<E> {
  const told: Told<E>[] = [];
  const changed: E[] = [];
  for (const entry of entries) {
    const lines = bendEntry(entry, lies, window);
    told.push(...lines);
    const isChanged = lines.some(({ isTrue, falseFields }) => !isTrue || falseFields.length > 0);
    if (lines.length > 0 ? isChanged : isInside(entry, window)) changed.push(entry);
  }
  return { told, changed };
}

function bendEntry<E extends Entry>(entry: E, lies: readonly ActiveLie[], window: Window): Told<E>[] {
  const chosen = lies.filter((lie) => isBending(lie, entry));
  const has = (kind: LieKind) => chosen.some((lie) => lie.kind === kind);
  if (has("empty")) return [];
  const shown = has("short") ? [] : showEntry(entry, chosen, window);
  const phantoms = chosen.flatMap((lie) => (lie.kind === "phantom" ? inventEntry(entry, lie, window) : []));
  const twice = has("endInclusive") ? shown.flatMap((line) => countTwice(line, window)) : [];
  const forgetting = chosen.filter(({ kind }) => kind === "forgets");
  return [
    ...shown.filter((line) => isInside(line, window) || has("outOfWindow")),
    ...phantoms,
    ...twice,
  ].filter(({ timestamp }) => !forgetting.some((lie) => isForgotten(lie, timestamp, window.now)));
}

function showEntry<E extends Entry>(of: E, chosen: readonly ActiveLie[], window: Window): Told<E>[] {
  const has = (kind: LieKind) => chosen.some((lie) => lie.kind === kind);
  const copies = has("doubled") ? 2 : 1;
  const timestamp = has("outOfWindow") ? window.from - HOUR_MS : bendTime(of.timestamp, chosen, window.now);
  const isTrue = copies === 1 && timestamp === of.timestamp;
  const fields = Object.assign(
    {},
    ...chosen.map((lie) => (lie.kind === "wrongValue" ? lie.fields : {})),
  ) as Partial<Record<Dimension, string>>;
  const { entry, falseFields } = falsifyEntry(of, fields);
  return Array.from({ length: copies }, () => ({ of, entry, timestamp, isTrue, falseFields }));
}

function inventEntry<E extends Entry>(of: E, { salt = "" }: ActiveLie, window: Window): Told<E>[] {
  const digits = hash("sha1", `phantom ${salt} ${of.logId}`);
  const logId = digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5");
  const timestamp = of.timestamp + 1;
  const line = { of, entry: { ...of, logId, timestamp }, timestamp, isTrue: false, falseFields: [] };
  return isSameDay(timestamp, of.timestamp) && isInside(line, window) ? [line] : [];
}

/** Returns the line for the bucket that ends at the line's time. Its time is 1 ms earlier, so that it falls into it. */
function countTwice<E extends Entry>(line: Told<E>, { from, to, buckets = 0 }: Window): Told<E>[] {
  const { timestamp } = line;
  const isEnd =
    timestamp > from && timestamp <= to && ((timestamp - from) * Math.max(buckets, 1)) % (to - from) === 0;
  return isEnd ? [{ ...line, timestamp: timestamp - 1, isTrue: false }] : [];
}

function bendTime(at: number, lies: readonly ActiveLie[], now: number): number {
  let bent = at;
  for (const { kind, shiftMs = 0 } of lies) {
    const shifted = bent + shiftMs;
    if (kind === "shifted" && isSameDay(shifted, bent) && shifted < now) bent = shifted;
    if (kind === "rounded") bent -= bent % 1_000;
  }
  return bent;
}

function isForgotten({ keptMs = Number.POSITIVE_INFINITY }: ActiveLie, at: number, now: number): boolean {
  return at < now - keptMs;
}

function isInside({ timestamp }: { readonly timestamp: number }, { from, to }: Window): boolean {
  return timestamp >= from && timestamp < to;
}

function isSameDay(one: number, other: number): boolean {
  return Math.floor(one / DAY_MS) === Math.floor(other / DAY_MS);
}

/** Returns how far a changed time may lie from the true one. */
export function reachOf(lies: readonly ActiveLie[]): number {
  const reaches = lies.map(({ kind, shiftMs = 0 }) => {
    if (kind === "shifted") return Math.abs(shiftMs);
    if (kind === "phantom" || kind === "endInclusive") return 1;
    return kind === "rounded" ? 1_000 : 0;
  });
  return reaches.reduce((sum, reach) => sum + reach, 0);
}
