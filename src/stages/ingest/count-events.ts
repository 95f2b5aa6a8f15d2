import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { WafEvent } from "#model/waf-event.ts";

type Counted = Pick<WafEvent, "ruleId" | "occurredAt" | "feature">;

/**
 * Returns the minutes (epoch ms) of each rule that these events make stale. An event whose rule is not known counts
 * under ''.
 */
function touchedMinutes(events: readonly Counted[]) {
  const touched = new Map<string, Set<number>>();
  for (const { ruleId, occurredAt } of events) {
    const minute = occurredAt - (occurredAt % MINUTE_MS);
    const known = touched.get(ruleId ?? "");
    if (known === undefined) touched.set(ruleId ?? "", new Set([minute]));
    else known.add(minute);
  }
  return touched;
}

/** Returns the number of events of each hour (epoch ms of its start). */
function countByHour(events: readonly Counted[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { occurredAt } of events) {
    const hour = occurredAt - (occurredAt % HOUR_MS);
    counts.set(hour, (counts.get(hour) ?? 0) + 1);
  }
  return counts;
}

/** Returns the stale minutes and the counts of a page of new events. */
export function countEvents(events: readonly Counted[]) {
  return {
    minutes: touchedMinutes(events),
    hours: countByHour(events),
    hasUnresolved: events.some(({ feature }) => feature === null),
  };
}
