import type { Thresholds } from "./thresholds.ts";

/**
 * Thresholds belong to the hour. A late event may change an old hour, so thresholds are not cached for the whole
 * hour.
 */
const KEPT_MS = 600_000;

interface CachedThresholds {
  readonly thresholds: Thresholds;
  /** The hour of the rule's first event; Infinity without any. */
  readonly firstHour: number;
}

export type ThresholdCache = ReturnType<typeof createThresholdCache>;

/**
 * Returns a cache that saves reading 168 hours per series at every tick. Every entry can be computed again. A key names
 * everything that thresholds depend on besides the counts.
 */
export function createThresholdCache() {
  const entries = new Map<string, CachedThresholds & { untilMs: number }>();
  return {
    get(key: string, nowMs: number): CachedThresholds | undefined {
      const entry = entries.get(key);
      return entry !== undefined && nowMs < entry.untilMs ? entry : undefined;
    },
    set(key: string, cached: CachedThresholds, nowMs: number): void {
      entries.set(key, { ...cached, untilMs: nowMs + KEPT_MS });
    },
    /** Removes entries that are too old to be used again. */
    prune(nowMs: number): void {
      for (const [key, { untilMs }] of entries) if (nowMs >= untilMs) entries.delete(key);
    },
  };
}
