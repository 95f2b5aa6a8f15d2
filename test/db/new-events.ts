import { type NewEvent, toEventRows } from "../../db/event-rows.ts";
import type { NewEvents } from "../../db/queries/store-events.ts";
import { countEvents } from "../../src/ingest/count-events.ts";

/** A page of events as ingest hands it to storage. */
export function toNewEvents(zoneId: number, events: readonly NewEvent[]): NewEvents {
  const times = events.map(({ occurredAt }) => occurredAt);
  return {
    rows: toEventRows(zoneId, events),
    size: events.length,
    firstAt: times.length === 0 ? null : Math.min(...times),
    lastAt: times.length === 0 ? null : Math.max(...times),
    counts: countEvents(events),
  };
}
