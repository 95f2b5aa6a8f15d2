import { LONGEST_WINDOW, WINDOW_COUNT } from "#detection/rules/detection-settings.ts";
import { ownText } from "#lib/text.ts";
import { WINDOWS } from "#model/kinds.ts";

/** A key counts its newest members only, so that a flood of addresses cannot fill the memory. */
export const MAX_MEMBERS = 2_000;
/** The most keys of one zone and series. */
const MAX_KEYS = 50_000;
const FEWEST_KEYS = 500;
/** A key with more members than this counts them by minute. Most addresses trigger one rule or two. */
const FEW_MEMBERS = 8;
/** Minutes of a ring: a power of two, and no fewer than the longest window. */
const RING = 64;
const LAST_SLOT = RING - 1;

/** A key and its members by window (3, 15, 60 minutes). */
export interface CountedKey {
  readonly key: string;
  readonly counts: Int32Array;
  /** The members less those that are usual for the key. */
  readonly excess: Int32Array;
}

/** The usual number of members of a key, by window; undefined if nothing is known. */
export type UsualOf = (key: string) => ArrayLike<number> | undefined;

/** Called with the keys of a minute that have `atLeast` members and more in the longest window. */
interface Visit {
  readonly atLeast: number;
  readonly call: (key: string, counts: ArrayLike<number>) => void;
}

interface KeyState {
  readonly key: string;
  readonly number: number;
  lastSeen: number;
  /** While there are few: each member, followed by the minute in which it was last seen. Null once there are many. */
  few: number[] | null;
  /**
   * How many members were last seen in a minute, at the minute modulo 64, up to `lastSeen`. A table of all keys knows the
   * minute of each.
   */
  ring: Uint16Array | null;
}

/** Counts the different members of each key over the last hour. Minutes are numbered since the epoch. */
export interface DistinctMembers {
  /** Notes a member of a key, by the member's number. Minutes never go back. */
  readonly add: (key: string, member: number, minute: number) => void;
  /**
   * Returns E by window: the largest excess over a key's usual count among the keys seen in this minute; 0 without any.
   * Other keys can only have become smaller.
   */
  readonly close: (minute: number, usualOf: UsualOf, visit?: Visit) => Int32Array;
  /** Returns the keys seen in this minute whose excess reaches the line of a window. */
  readonly reaching: (minute: number, usualOf: UsualOf, lines: ArrayLike<number>) => CountedKey[];
  /** Returns the members of a key by window, up to and including the minute. */
  readonly countsOf: (key: string, minute: number) => Int32Array;
  /** Returns the members of a key in the newest minute alone. */
  readonly countIn: (key: string, minute: number) => number;
}

const [SHORT, MIDDLE] = WINDOWS;

export function createDistinctMembers(): DistinctMembers {
  const keys = new Map<string, KeyState>();
  let room = FEWEST_KEYS;
  /** The keys of the newest minute, in the order in which they were seen. */
  let touched: KeyState[] = [];
  let touchedMinute = -1;
  const counts = new Int32Array(WINDOW_COUNT);
  const pairs = createPairTable();
  let next = 0;

  function addKey(key: string, member: number, minute: number): KeyState {
    if (keys.size >= room) {
      makeRoom(keys, minute);
      room = Math.min(Math.max(2 * keys.size, FEWEST_KEYS), MAX_KEYS);
    }
    const state: KeyState = {
      key: ownText(key),
      number: next++,
      lastSeen: -1,
      few: [member, minute],
      ring: null,
    };
    keys.set(state.key, state);
    return state;
  }

  function touch(state: KeyState, minute: number): void {
    if (touchedMinute !== minute) touched = [];
    touchedMinute = minute;
    if (state.ring !== null) advance(state.ring, state.lastSeen, minute);
    state.lastSeen = minute;
    touched.push(state);
  }

  function noteMany({ number }: KeyState, ring: Uint16Array, member: number, minute: number): void {
    // Counts stop at MAX_MEMBERS, so further members of a minute change nothing.
    if ((ring[minute & LAST_SLOT] as number) >= MAX_MEMBERS) return;
    const before = pairs.note(number, member, minute);
    if (before === minute) return;
    if (before !== null && before > minute - LONGEST_WINDOW) ring[before & LAST_SLOT]! -= 1;
    ring[minute & LAST_SLOT]! += 1;
  }

  function countByMinute(few: readonly number[], state: KeyState, minute: number): Uint16Array {
    const ring = new Uint16Array(RING);
    for (let i = 0; i < few.length; i += 2) {
      const seen = few[i + 1] as number;
      if (seen > minute - LONGEST_WINDOW) noteMany(state, ring, few[i] as number, seen);
    }
    state.few = null;
    state.ring = ring;
    return ring;
  }

  return {
    add(key, member, minute) {
      const state = keys.get(key) ?? addKey(key, member, minute);
      if (state.lastSeen !== minute) touch(state, minute);
      const { few } = state;
      if (few !== null && noteFew(few, member, minute)) return;
      noteMany(state, state.ring ?? countByMinute(few ?? [], state, minute), member, minute);
    },

    close(minute, usualOf, visit) {
      const excess = new Int32Array(WINDOW_COUNT);
      if (touchedMinute !== minute) return excess;
      let least = 0;
      for (const state of touched) {
        // A key with no more members than every leader's excess cannot lead.
        const most = state.few === null ? MAX_MEMBERS : state.few.length / 2;
        if (most <= least && (visit === undefined || most < visit.atLeast)) continue;
        count(state, minute, counts);
        if (visit !== undefined && (counts[2] as number) >= visit.atLeast) visit.call(state.key, counts);
        const usual = usualOf(state.key);
        for (let i = 0; i < WINDOW_COUNT; i += 1) {
          excess[i] = Math.max(excess[i] as number, (counts[i] as number) - (usual?.[i] ?? 0));
        }
        least = Math.min(excess[0] as number, excess[1] as number, excess[2] as number);
      }
      return excess;
    },

    reaching(minute, usualOf, lines) {
      if (touchedMinute !== minute) return [];
      const least = Math.min(...Array.from(lines));
      return touched.flatMap((state): CountedKey[] => {
        if (state.few !== null && state.few.length / 2 < least) return [];
        const own = count(state, minute, new Int32Array(WINDOW_COUNT));
        const usual = usualOf(state.key);
        const excess = own.map((members, i) => Math.max(members - (usual?.[i] ?? 0), 0));
        const reaches = excess.some((members, i) => members >= (lines[i] as number));
        return reaches ? [{ key: state.key, counts: own, excess }] : [];
      });
    },

    countsOf(key, minute) {
      const state = keys.get(key);
      const found = new Int32Array(WINDOW_COUNT);
      return state === undefined ? found : count(state, minute, found);
    },

    countIn(key, minute) {
      const { lastSeen, few, ring } = keys.get(key) ?? { lastSeen: -1, few: null, ring: null };
      if (lastSeen !== minute) return 0;
      if (ring !== null) return ring[minute & LAST_SLOT] as number;
      return few?.filter((seen, i) => i % 2 === 1 && seen === minute).length ?? 0;
    },
  };
}

/** Returns false if the member is one too many. */
function noteFew(few: number[], member: number, minute: number): boolean {
  let place = few.length;
  for (let i = 0; i < few.length; i += 2) {
    if (few[i] === member) {
      few[i + 1] = minute;
      return true;
    }
    if ((few[i + 1] as number) <= minute - LONGEST_WINDOW) place = i;
  }
  if (place >= 2 * FEW_MEMBERS) return false;
  few[place] = member;
  few[place + 1] = minute;
  return true;
}

/** Moves a ring on to a later minute. */
function advance(ring: Uint16Array, from: number, to: number): void {
  for (let minute = Math.max(from, to - RING) + 1; minute <= to; minute += 1) ring[minute & LAST_SLOT] = 0;
}

function count({ few, ring, lastSeen }: KeyState, minute: number, out: Int32Array): Int32Array {
  let [short, middle, long] = [0, 0, 0];
  if (ring !== null) {
    for (let at = Math.min(minute, lastSeen); at > minute - LONGEST_WINDOW; at -= 1) {
      long += ring[at & LAST_SLOT] as number;
      if (at === minute - SHORT + 1) short = long;
      if (at === minute - MIDDLE + 1) middle = long;
    }
  }
  const members = few?.length ?? 0;
  for (let i = 1; i < members; i += 2) {
    const seen = few?.[i] as number;
    if (seen > minute - LONGEST_WINDOW) long += 1;
    if (seen > minute - MIDDLE) middle += 1;
    if (seen > minute - SHORT) short += 1;
  }
  out[0] = Math.min(short, MAX_MEMBERS);
  out[1] = Math.min(middle, MAX_MEMBERS);
  out[2] = Math.min(long, MAX_MEMBERS);
  return out;
}

/**
 * Forgets the keys of which nothing is counted any more. If they are still too many, forgets another tenth: those that
 * have one member first, so that a flood of new keys hides no large one.
 */
function makeRoom(keys: Map<string, KeyState>, minute: number): void {
  for (const [key, { lastSeen }] of keys) if (lastSeen <= minute - LONGEST_WINDOW) keys.delete(key);
  let surplus = keys.size - (MAX_KEYS - MAX_KEYS / 10);
  for (const isAny of [false, true]) {
    for (const [key, { few }] of keys) {
      if (surplus <= 0) return;
      if (!isAny && (few === null || few.length > 2)) continue;
      keys.delete(key);
      surplus -= 1;
    }
  }
}

const FEWEST_SLOTS = 256;
/** In a flood of more pairs the oldest are forgotten, and a member that comes back counts twice. */
const MAX_PAIRS = 250_000;
/** Numbers of a slot: key, member, and the minute after the one in which the pair was seen, 0 if the slot is free. */
const WIDTH = 3;

/**
 * Remembers in which minute each pair of a key and a member was last seen. One table of numbers, because a map for each
 * key would take several times as long.
 */
interface PairTable {
  /** Stores the minute. Returns the minute that was stored before; null if the pair is new. */
  readonly note: (key: number, member: number, minute: number) => number | null;
}

function createPairTable(): PairTable {
  let slots = new Int32Array(FEWEST_SLOTS * WIDTH);
  let mask = FEWEST_SLOTS - 1;
  let used = 0;
  let newest = 0;

  /** Returns where the pair is, or the free slot where it belongs. */
  function find(key: number, member: number): number {
    let slot = hashOf(key, member) & mask;
    for (;;) {
      const at = slot * WIDTH;
      if (slots[at + 2] === 0 || (slots[at] === key && slots[at + 1] === member)) return at;
      slot = (slot + 1) & mask;
    }
  }

  function put(at: number, key: number, member: number, after: number): void {
    slots[at] = key;
    slots[at + 1] = member;
    slots[at + 2] = after;
    used += 1;
  }

  /** Forgets pairs that no window counts any more, and leaves more free slots than the others take. */
  function rebuild(): void {
    const before = slots;
    const perMinute = new Int32Array(LONGEST_WINDOW);
    for (let at = 2; at < before.length; at += WIDTH) {
      const age = newest + 1 - (before[at] as number);
      if (age < LONGEST_WINDOW) perMinute[age]! += 1;
    }
    let kept = perMinute[0] as number;
    let ages = 1;
    for (; ages < LONGEST_WINDOW && kept + (perMinute[ages] as number) <= MAX_PAIRS; ages += 1)
      kept += perMinute[ages] as number;
    let size = FEWEST_SLOTS;
    while (size < 4 * kept) size *= 2;
    slots = new Int32Array(size * WIDTH);
    mask = size - 1;
    used = 0;
    for (let at = 0; at < before.length; at += WIDTH) {
      const [key, member, after] = [before[at] as number, before[at + 1] as number, before[at + 2] as number];
      if (after > newest + 1 - ages && after !== 0) put(find(key, member), key, member, after);
    }
  }

  return {
    note(key, member, minute) {
      const at = find(key, member);
      const after = slots[at + 2] as number;
      if (after !== 0) {
        slots[at + 2] = minute + 1;
        return after - 1;
      }
      put(at, key, member, minute + 1);
      // A key that gets too many members brings those of earlier minutes.
      newest = Math.max(newest, minute);
      if (2 * used > mask) rebuild();
      return null;
    },
  };
}

function hashOf(key: number, member: number): number {
  const mixed = Math.imul(Math.imul(key, 0x9e3779b1) ^ member, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}
