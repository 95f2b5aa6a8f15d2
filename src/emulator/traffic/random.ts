/** A small fast generator (sfc32). Reseeded for every event, so that an event depends on its key alone. */
export interface Random {
  /** The four words are the whole state: distinct keys give distinct streams. */
  reseed(a: number, b: number, c: number, d: number): void;
  /** A 32-bit unsigned integer. */
  next(): number;
  /** In [0, 1). */
  fraction(): number;
  /** An integer in [0, count). */
  below(count: number): number;
  pick<T>(items: readonly T[]): T;
}

const WARM_UP_ROUNDS = 15;

export function createRandom(): Random {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;

  const next = () => {
    const sum = (a + b + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  const fraction = () => next() / 2 ** 32;
  const below = (count: number) => Math.floor(fraction() * count);

  return {
    reseed(wordA, wordB, wordC, wordD) {
      a = wordA | 0;
      b = wordB | 0;
      c = wordC | 0;
      d = wordD | 0;
      for (let round = 0; round < WARM_UP_ROUNDS; round++) next();
    },
    next,
    fraction,
    below,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new RangeError("nothing to pick from");
      return item;
    },
  };
}

/** Returns FNV-1a over UTF-16 code units, finished with a mixer; 32 bits, for keys and not for security. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
