import { hash } from "node:crypto";
import { DAY_MS, HOUR_MS } from "../../../src/lib/units.ts";
import type { Lie } from "./lie.ts";

interface Entry {
  readonly logId: string;
  readonly timestamp: number;
}

/** One line of an answer. */
export interface Told<E extends Entry> {
  readonly entry: E;
  /** The time that the answer gives. */
  readonly timestamp: number;
  /** True if the entry appears once and with its own time. */
  readonly isTrue: boolean;
}

export interface BentEntries<E extends Entry> {
  readonly told: readonly Told<E>[];
  /** Entries that the answer leaves out, shows twice or shows with another time. */
  readonly changed: readonly E[];
}

/** The requested window, half-open. The emulator's `now` limits shifted times. */
export interface Window {
  readonly from: number;
  readonly to: number;
  readonly now: number;
}

/** Returns whether a lie affects this event: a function of the lie's salt and the log id alone. */
export function isChosen(lie: Lie, { logId, timestamp }: Entry): boolean {
  const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = lie.events ?? {};
  if (timestamp < from || timestamp >= to) return false;
  const { kind, salt = "" } = lie;
  const share = kind === "empty" ? 1 : (lie.share ?? 1);
  return share >= 1 || Number.parseInt(hash("sha1", salt + logId).slice(0, 8), 16) / 2 ** 32 < share;
}

/** Applies all the lies to true entries. Entries whose changed time lies outside the window are left out. */
export function bendEntries<E extends Entry>(
  entries: readonly E[],
  lies: readonly Lie[],
  window: Window,
): BentEntries<E> {
  const told: Told<E>[] = [];
  const changed: E[] = [];
  for (const entry of entries) {
    const lines = bendEntry(entry, lies, window);
    told.push(...lines);
    const isInside = entry.timestamp >= window.from && entry.timestamp < window.to;
    if (lines.length > 0 ? lines.some(({ isTrue }) => !isTrue) : isInside) changed.push(entry);
  }
  return { told, changed };
}

function bendEntry<E extends Entry>(entry: E, lies: readonly Lie[], window: Window): Told<E>[] {
  const chosen = lies.filter((lie) => isChosen(lie, entry));
  const has = (...kinds: Lie["kind"][]) => chosen.some(({ kind }) => kinds.includes(kind));
  if (has("empty", "short")) return [];
  const copies = has("doubled") ? 2 : 1;
  const timestamp = has("outOfWindow")
    ? window.from - HOUR_MS
    : bendTime(entry.timestamp, chosen, window.now);
  const isInside = timestamp >= window.from && timestamp < window.to;
  if (!isInside && !has("outOfWindow")) return [];
  const isTrue = copies === 1 && timestamp === entry.timestamp;
  return Array.from({ length: copies }, () => ({ entry, timestamp, isTrue }));
}

function bendTime(at: number, lies: readonly Lie[], now: number): number {
  let bent = at;
  for (const { kind, shiftMs = 0 } of lies) {
    const shifted = bent + shiftMs;
    const isSameDay = Math.floor(shifted / DAY_MS) === Math.floor(bent / DAY_MS);
    if (kind === "shifted" && isSameDay && shifted < now) bent = shifted;
    if (kind === "rounded") bent -= bent % 1_000;
  }
  return bent;
}

/** Returns how far a changed time may lie from the true one. */
export function reachOf(lies: readonly Lie[]): number {
  const reaches = lies.map(({ kind, shiftMs = 0 }) => {
    if (kind === "shifted") return Math.abs(shiftMs);
    return kind === "rounded" ? 1_000 : 0;
  });
  return reaches.reduce((sum, reach) => sum + reach, 0);
}
