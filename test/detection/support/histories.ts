import fc from "fast-check";

/** A shape of traffic: quiet, steady, daily, bursty; drawn minute by minute from a seed, so that a history is cheap. */
export interface Shape {
  readonly seed: number;
  readonly firstMinute: number;
  readonly hours: number;
  readonly perMinute: number;
  readonly daily: boolean;
  readonly burstShare: number;
  readonly burstFactor: number;
  readonly silentShare: number;
}

export const shapes: fc.Arbitrary<Shape> = fc.record({
  seed: fc.integer(),
  firstMinute: fc.integer({ min: 20_000_000, max: 20_000_000 + 10_000 }),
  hours: fc.integer({ min: 0, max: 240 }),
  perMinute: fc.constantFrom(0.002, 0.05, 0.5, 4, 40),
  daily: fc.boolean(),
  burstShare: fc.constantFrom(0, 0.001, 0.01),
  burstFactor: fc.integer({ min: 2, max: 200 }),
  silentShare: fc.constantFrom(0, 0, 0.3, 0.9),
});

/** Mulberry32: the same numbers for the same seed. */
export function createFractions(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function drawCounts(shape: Shape): number[] {
  const fraction = createFractions(shape.seed);
  let burstLeft = 0;
  let isSilent = false;
  return Array.from({ length: shape.hours * 60 + Math.floor(fraction() * 60) }, (_, i) => {
    const minute = shape.firstMinute + i;
    if (minute % 60 === 0) isSilent = fraction() < shape.silentShare;
    if (burstLeft > 0) burstLeft -= 1;
    else if (fraction() < shape.burstShare) burstLeft = Math.floor(fraction() * 30);
    const rhythm = shape.daily ? 1 + 0.9 * Math.sin((2 * Math.PI * minute) / 1_440) : 1;
    const mean = isSilent ? 0 : shape.perMinute * rhythm * (burstLeft > 0 ? shape.burstFactor : 1);
    return drawPoisson(mean, fraction);
  });
}

export function drawPoisson(mean: number, fraction: () => number): number {
  if (mean > 50)
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * (fraction() + fraction() + fraction() - 1.5) * 2));
  const limit = Math.exp(-mean);
  let count = -1;
  for (let product = 1; product > limit; product *= fraction()) count += 1;
  return Math.max(0, count);
}
