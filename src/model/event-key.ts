import { startOfDay, toDay } from "./horizon.ts";

/** Identifies one event of a zone. */
export interface EventKey {
  /** Epoch ms. */
  readonly occurredAt: number;
  readonly logId: string;
}

/** Returns the earliest and the latest time of events, epoch ms; null if there is no event. */
export function spanOf(
  events: readonly Pick<EventKey, "occurredAt">[],
): { readonly firstAt: number; readonly lastAt: number } | null {
  if (events.length === 0) return null;
  let [firstAt, lastAt] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { occurredAt } of events) {
    firstAt = Math.min(firstAt, occurredAt);
    lastAt = Math.max(lastAt, occurredAt);
  }
  return { firstAt, lastAt };
}

/** Returns the UTC days of events, `yyyy-mm-dd`. */
export function daysOf(events: readonly Pick<EventKey, "occurredAt">[]): string[] {
  return [...new Set(events.map(({ occurredAt }) => startOfDay(occurredAt)))].map(toDay);
}
