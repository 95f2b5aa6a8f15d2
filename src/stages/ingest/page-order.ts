interface PageTimes {
  /** Epoch ms; null on a page without entries. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
}

export interface PageOrder {
  /** Adds the next page of the pass. */
  add(page: PageTimes): void;
  /** Returns whether the pages of the pass came oldest first. One page alone shows no order. */
  isOldestFirst(): boolean;
}

/**
 * Observes in which order a pass shows its pages. Late entries may make a page begin before the page before it ended,
 * so only the pages' ends have to rise. `isKnown`: earlier passes have shown that the list comes oldest first, and the
 * pass began at its last page. It then needs no second page, but a page that goes back changes the result.
 */
export function watchPageOrder(isKnown: boolean): PageOrder {
  let before: number | null = null;
  let hasRisen = isKnown;
  let hasFallen = false;
  return {
    add({ firstAt, lastAt }) {
      if (firstAt === null || lastAt === null) return;
      if (before !== null && lastAt < before) hasFallen = true;
      if (before !== null && lastAt > before) hasRisen = true;
      before = lastAt;
    },
    isOldestFirst: () => hasRisen && !hasFallen,
  };
}
