export interface Dice {
  /** Returns a whole number from `from` to `to`. */
  roll(from: number, to: number): number;
  pick<T>(choices: readonly T[]): T;
}

/** Returns Mulberry32: the same numbers for the same seed. */
export function createDice(seed: number): Dice {
  let state = seed;
  const roll = (from: number, to: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return from + (((mixed ^ (mixed >>> 14)) >>> 0) % (to - from + 1));
  };
  return {
    roll,
    pick<T>(choices: readonly T[]): T {
      const picked = choices[roll(0, choices.length - 1)];
      if (picked === undefined) throw new Error("nothing to pick from");
      return picked;
    },
  };
}
