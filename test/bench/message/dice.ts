import { createRandom, hashText } from "#emulator/traffic/random.ts";

export type Dice = ReturnType<typeof createDice>;

/** Returns the chances that belong to a name: the same name gives the same sequence. */
export function createDice(name: string) {
  const random = createRandom();
  random.reseed(hashText(name), hashText(`${name}/a`), hashText(`${name}/b`), hashText(`${name}/c`));
  const fraction = () => random.fraction();
  const below = (count: number) => random.below(count);
  const between = (from: number, to: number) => from + fraction() * (to - from);

  return {
    fraction,
    below,
    pick: <T>(items: readonly T[]): T => random.pick(items),
    between,
    /** Returns a whole number of [from, to]. */
    whole: (from: number, to: number) => from + below(to - from + 1),
    chance: (share: number) => fraction() < share,
    /** Returns the wait for the next of events that come `mean` apart in the mean. */
    wait: (mean: number) => -Math.log(1 - fraction()) * mean,
    hex: (digits: number) =>
      Array.from({ length: Math.ceil(digits / 8) }, () => random.next().toString(16).padStart(8, "0"))
        .join("")
        .slice(0, digits),
    /** Returns one of the entries; each is as likely as its weight says. */
    weighted<T>(entries: readonly (readonly [T, number])[]): T {
      let left = fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [entry, weight] of entries) {
        left -= weight;
        if (left < 0) return entry;
      }
      const last = entries.at(-1);
      if (last === undefined) throw new RangeError("nothing to choose from");
      return last[0];
    },
    shuffle<T>(items: readonly T[]): T[] {
      const all = [...items];
      for (let index = all.length - 1; index > 0; index -= 1) {
        const other = below(index + 1);
        [all[index], all[other]] = [all[other] as T, all[index] as T];
      }
      return all;
    },
  };
}
