const MAX_Z = 10;
const STEP = 0.5;
/** A smaller number of marks may be chance. */
const ENOUGH_MARKS = 3;

/**
 * Returns the smallest z, in steps of a half, at which at least half of the spikes marked as noise would not have
 * opened. Returns null if fewer than three were marked, or if no z helps. `scores` are those of the noise.
 */
export function suggestZ(scores: readonly number[], z: number): { z: number; silenced: number } | null {
  if (scores.length < ENOUGH_MARKS) return null;
  const sorted = scores.toSorted((a, b) => a - b);
  const middle = sorted[Math.ceil(sorted.length / 2) - 1] as number;
  // A window opens a spike from z on, so z must be above the window's score.
  const suggested = Math.max((Math.floor(middle / STEP) + 1) * STEP, z + STEP);
  if (suggested > MAX_Z) return null;
  return { z: suggested, silenced: sorted.filter((score) => score < suggested).length };
}
