import { LONGEST_WINDOW } from "../detection-settings.ts";

const FEWEST_SLOTS = 256;
/** In a flood of more pairs the oldest are forgotten, and a member that comes back counts twice. */
const MAX_PAIRS = 250_000;
/** Numbers of a slot: key, member, and the minute after the one in which the pair was seen, 0 if the slot is free. */
const WIDTH = 3;

/**
 * Remembers in which minute each pair of a key and a member was last seen. One table of numbers, because a map for each
 * key would take several times as long.
 */
export interface PairTable {
  /** Stores the minute. Returns the minute that was stored before; null if the pair is new. */
  readonly note: (key: number, member: number, minute: number) => number | null;
}

export function createPairTable(): PairTable {
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
