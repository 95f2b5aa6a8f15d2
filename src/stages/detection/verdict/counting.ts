/** Returns how often each text occurs; an empty one is not known. */
export function countBy<T>(all: readonly T[], read: (one: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) {
    const text = read(one);
    if (text !== "") addTo(counts, text);
  }
  return counts;
}

export function addTo(counts: Map<string, number>, text: string, more = 1): void {
  counts.set(text, (counts.get(text) ?? 0) + more);
}

/** Returns the counted texts, the most frequent first. */
export function sortCounts(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].sort(([, one], [, other]) => other - one).map(([text]) => text);
}

/** Returns the different texts that are not empty, the most frequent first. */
export function mostFrequent(texts: readonly string[]): string[] {
  return sortCounts(countBy(texts, (text) => text));
}

/** Returns at most `most` items of a list, evenly spread over it. */
export function spread<T>(list: readonly T[], most: number): readonly T[] {
  const step = Math.max(1, list.length / most);
  return list.filter((_, index) => index % step < 1);
}
