/** Seeded random draws. The same seed draws the same numbers on every machine. */
export interface Draw {
  /** A number in [0, 1). */
  readonly unit: () => number;
  readonly between: (from: number, to: number) => number;
  readonly integer: (from: number, to: number) => number;
  /** The same ratio between `from` and `to` is equally likely everywhere. */
  readonly logBetween: (from: number, to: number) => number;
  readonly poisson: (mean: number) => number;
  readonly pick: <T>(values: readonly T[]) => T;
  /** A place in a list of `size`, the first ones most likely. */
  readonly zipf: (size: number, exponent: number) => number;
  readonly chance: (probability: number) => boolean;
}

export function createDraw(seed: number): Draw {
  let state = (seed * 2_654_435_761) >>> 0;
  function unit(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }
  const between = (from: number, to: number) => from + unit() * (to - from);
  const tables = new Map<string, Float64Array>();
  function zipfTable(size: number, exponent: number): Float64Array {
    const name = `${size}/${exponent}`;
    const known = tables.get(name);
    if (known !== undefined) return known;
    const table = new Float64Array(size);
    let sum = 0;
    for (let i = 0; i < size; i += 1) table[i] = sum += (i + 1) ** -exponent;
    for (let i = 0; i < size; i += 1) table[i] = (table[i] as number) / sum;
    tables.set(name, table);
    return table;
  }
  function poisson(mean: number): number {
    if (mean > 50) {
      const normal = Math.sqrt(-2 * Math.log(1 - unit())) * Math.cos(2 * Math.PI * unit());
      return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal));
    }
    let [count, left] = [0, Math.exp(-mean)];
    for (let product = unit(); product > left; product *= unit()) count += 1;
    return count;
  }
  return {
    unit,
    between,
    poisson,
    integer: (from, to) => Math.floor(between(from, to + 1)),
    logBetween: (from, to) => from * (to / from) ** unit(),
    pick: (values) => values[Math.floor(unit() * values.length)] as never,
    chance: (probability) => unit() < probability,
    zipf(size, exponent) {
      const table = zipfTable(size, exponent);
      const at = unit();
      let [low, high] = [0, size - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((table[middle] as number) < at) low = middle + 1;
        else high = middle;
      }
      return low;
    },
  };
}
