import { LONGEST_WINDOW, WINDOW_COUNT, WINDOWS } from "../thresholds/windows.ts";

/** A key keeps its newest members only, so that a flood of addresses cannot fill the memory. */
export const MAX_MEMBERS = 2_000;
/** The most keys of one zone and series. */
const MAX_KEYS = 50_000;

/** The key that has the most members in a window, less what is usual for the key. */
export interface Leader {
  readonly key: string;
  readonly count: number;
  readonly usual: number;
}

/** The counts of one series in a minute, by window (3, 15, 60 minutes). */
export interface DistinctMinute {
  /** E: the largest excess over the key's usual count; 0 if no key was seen in the minute. */
  readonly excess: Int32Array;
  readonly leaders: readonly (Leader | null)[];
}

/** The usual number of members of a key, by window; undefined if nothing is known. */
export type UsualOf = (key: string) => ArrayLike<number> | undefined;

/** A key that has one member needs no map. Most addresses trigger one rule. */
interface KeyState {
  lastSeen: number;
  only: string;
  members: Map<string, number> | null;
}

/** Called with every key of a minute that has members, and with its counts by window. */
type Visit = (key: string, counts: ArrayLike<number>) => void;

/** Counts the different members of each key over the last hour. Minutes are numbered since the epoch. */
export interface DistinctMembers {
  /** Notes a member of a key. Minutes never go back. */
  readonly add: (key: string, member: string, minute: number) => void;
  /** Returns the largest counts among the keys seen in this minute; other keys can only have become smaller. */
  readonly close: (minute: number, usualOf: UsualOf, visit?: Visit) => DistinctMinute;
  /** Returns the members of a key by window, up to and including the minute. */
  readonly countsOf: (key: string, minute: number) => Int32Array;
  readonly membersOf: (key: string, sinceMinute: number) => string[];
}

const NO_EXCESS = new Int32Array(WINDOW_COUNT);
const NOTHING: DistinctMinute = { excess: NO_EXCESS, leaders: [null, null, null] };
const [SHORT, MIDDLE] = WINDOWS;

export function createDistinctMembers(): DistinctMembers {
  // Both maps are in order of last use, so what has expired comes first.
  const keys = new Map<string, KeyState>();
  let touched: [string, KeyState][] = [];
  let touchedMinute = -1;
  const counts = new Int32Array(WINDOW_COUNT);

  function touch(key: string, member: string, minute: number): KeyState {
    const known = keys.get(key);
    if (known !== undefined && known.lastSeen === minute && touchedMinute === minute) return known;
    if (touchedMinute !== minute) {
      touched = [];
      touchedMinute = minute;
      expireKeys(keys, minute);
    }
    const state = known ?? { lastSeen: minute, only: member, members: null };
    if (known === undefined && keys.size >= MAX_KEYS) makeRoom(keys);
    keys.delete(key);
    keys.set(key, state);
    touched.push([key, state]);
    return state;
  }

  function add(key: string, member: string, minute: number): void {
    const state = touch(key, member, minute);
    if (state.members === null && state.only !== member)
      state.members = new Map([[state.only, state.lastSeen]]);
    state.lastSeen = minute;
    const { members } = state;
    if (members === null || members.get(member) === minute) return;
    members.delete(member);
    if (members.size >= MAX_MEMBERS) members.delete(members.keys().next().value as string);
    members.set(member, minute);
  }

  function close(minute: number, usualOf: UsualOf, visit?: Visit): DistinctMinute {
    if (touchedMinute !== minute || touched.length === 0) return NOTHING;
    const excess = new Int32Array(WINDOW_COUNT);
    const leaders: (Leader | null)[] = [null, null, null];
    for (const [key, state] of touched) {
      if (state.members !== null) expireMembers(state.members, minute);
      // The shortest window has the smallest count: without a chance of leading there, the count of the key says it all.
      if (visit === undefined && sizeOf(state) <= (excess[0] as number)) continue;
      count(state, minute, counts);
      visit?.(key, counts);
      const usual = usualOf(key);
      for (let i = 0; i < WINDOW_COUNT; i += 1) {
        const over = (counts[i] as number) - (usual?.[i] ?? 0);
        if (over <= (excess[i] as number)) continue;
        excess[i] = over;
        leaders[i] = { key, count: counts[i] as number, usual: usual?.[i] ?? 0 };
      }
    }
    return { excess, leaders };
  }

  return {
    add,
    close,
    countsOf(key, minute) {
      const state = keys.get(key);
      const found = new Int32Array(WINDOW_COUNT);
      return state === undefined ? found : count(state, minute, found);
    },
    membersOf(key, sinceMinute) {
      const state = keys.get(key);
      if (state === undefined) return [];
      if (state.members === null) return state.lastSeen >= sinceMinute ? [state.only] : [];
      return [...state.members].filter(([, seen]) => seen >= sinceMinute).map(([member]) => member);
    },
  };
}

function sizeOf({ members }: KeyState): number {
  return members?.size ?? 1;
}

function count({ members, lastSeen }: KeyState, minute: number, out: Int32Array): Int32Array {
  out.fill(0);
  if (members === null) {
    for (let i = 0; i < WINDOW_COUNT; i += 1) out[i] = lastSeen > minute - (WINDOWS[i] as number) ? 1 : 0;
    return out;
  }
  let [short, middle, long] = [0, 0, 0];
  for (const seen of members.values()) {
    if (seen <= minute - LONGEST_WINDOW) continue;
    long += 1;
    if (seen > minute - MIDDLE) middle += 1;
    if (seen > minute - SHORT) short += 1;
  }
  out[0] = short;
  out[1] = middle;
  out[2] = long;
  return out;
}

function expireMembers(members: Map<string, number>, minute: number): void {
  for (const [member, seen] of members) {
    if (seen > minute - LONGEST_WINDOW) return;
    members.delete(member);
  }
}

function expireKeys(keys: Map<string, KeyState>, minute: number): void {
  for (const [key, { lastSeen }] of keys) {
    if (lastSeen > minute - LONGEST_WINDOW) return;
    keys.delete(key);
  }
}

/** Forgets a tenth of the keys: the oldest that have one member, so that a flood of new keys hides no large one. */
function makeRoom(keys: Map<string, KeyState>): void {
  let left = MAX_KEYS / 10;
  for (const [key, { members }] of keys) {
    if (members !== null && members.size > 1) continue;
    keys.delete(key);
    left -= 1;
    if (left === 0) return;
  }
  for (const key of keys.keys()) {
    if (left <= 0) return;
    keys.delete(key);
    left -= 1;
  }
}
