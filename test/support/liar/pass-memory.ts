import type { ListEntry } from "./true-platform.ts";

/** A page repeats so many entries of the page before the last one. */
const REPEATED = 3;
const REMEMBERED_TOKENS = 10_000;

export type PassMemory = ReturnType<typeof createPassMemory>;

/** Returns a memory of the last entries of the list's pages, by the continuation tokens that lead behind them. */
export function createPassMemory() {
  const behind = new Map<string, { last: readonly ListEntry[]; before: readonly ListEntry[] }>();
  return {
    /** Remembers a page, and returns the last entries of the page before the one before it. */
    follow(token: string, nextToken: string | null, logs: readonly ListEntry[]): readonly ListEntry[] {
      const { last = [], before = [] } = behind.get(token) ?? {};
      if (nextToken !== null) behind.set(nextToken, { last: logs.slice(-REPEATED), before: last });
      const [oldest] = behind.keys();
      if (behind.size > REMEMBERED_TOKENS && oldest !== undefined) behind.delete(oldest);
      return before;
    },
  };
}
