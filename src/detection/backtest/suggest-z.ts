const MAX_Z = 10;
const STEP = 0.5;
/** Fewer may be chance. */
const ENOUGH_MARKS = 3;

/**
 * The smallest z, in steps of a half, at which at least half of the spikes marked as noise would not have opened; null
 * where fewer than three were marked, or z cannot help. `scores` are those of the noise.
 */
export function suggestZ(scores: readonly number[], z: number): { z: number; silenced: number } | null {
  if (scores.length < ENOUGH_MARKS) return null;
  const sorted = scores.toSorted((a, b) => a - b);
  const middle = sorted[Math.ceil(sorted.length / 2) - 1] as number;
  // A window opens a spike from z on, so z must lie above its score.
  const suggested = Math.max((Math.floor(middle / STEP) + 1) * STEP, z + STEP);
  if (suggested > MAX_Z) return null;
  return { z: suggested, silenced: sorted.filter((score) => score < suggested).length };
}
