/** The middle of several measurements and how far they lie apart. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Null when nothing was measured. */
export function toSpread(values: readonly number[]): Spread | null {
  const sorted = values.toSorted((a, b) => a - b);
  const [min, max] = [sorted[0], sorted.at(-1)];
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (min === undefined || max === undefined || low === undefined || high === undefined) return null;
  return { median: (low + high) / 2, min, max };
}
