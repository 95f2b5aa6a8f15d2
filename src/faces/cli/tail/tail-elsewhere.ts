import type { Clock } from "#lib/clock.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import type { AskOperation } from "#operations/operation.ts";
import { listZones } from "#operations/service/zones.ts";
import { readPages as readList } from "../operations/read-pages.ts";
import { findPages, readPages, toEvents } from "../search/find-pages.ts";
import { keyOf, type ReadOnward } from "./follow-events.ts";
import type { TailSource } from "./tail-source.ts";

/** A poll asks at most twice for each zone. With this pause it takes half of the 600 requests a minute of a key. */
const PAUSE_PER_ZONE_MS = 400;
const MIN_PAUSE_MS = 1_000;
/** The clock of the service may differ. It accepts windows that end up to five minutes in its future. */
const AHEAD_MS = 150_000;
const PAGE_SIZE = 500;
/** So many events are read at once. */
const MAX_EVENTS = 5_000;
const MAX_ZONES = 10_000;
const WHOLE = { page: 0, pageSize: PAGE_SIZE };
const LIMIT = Number.POSITIVE_INFINITY;

/** Reads the events from a service elsewhere. `request` has the query and the filters of the API's search. */
export function tailElsewhere(
  askUntil: (signal: AbortSignal) => AskOperation,
  clock: Clock,
  request: object,
): TailSource {
  return {
    name: "service",
    pauseMs: (zones) => Math.max(MIN_PAUSE_MS, zones * PAUSE_PER_ZONE_MS),
    open(signal, work) {
      const ask = askUntil(signal);
      return work({
        readOnward: readerOf(ask, clock, request),
        async listZones() {
          const { items } = await readList(ask, listZones, {}, MAX_ZONES);
          return (items as { id: number }[]).map(({ id }) => id);
        },
      });
    },
  };
}

/** A search gives the newest events first. So it is asked for a span short enough to be read whole. */
function readerOf(ask: AskOperation, clock: Clock, request: object): ReadOnward<ArchivedEvent> {
  const find = (zoneId: number, from: number, to: number) =>
    findPages(ask, zoneId, { ...request, from, to }, { pageSize: PAGE_SIZE, format: "event" });

  return async (zoneId, from, after) => {
    let start = after === null ? from : after.occurredAt + 1;
    const end = clock() + AHEAD_MS;
    while (start < end) {
      let to = end;
      let first = await find(zoneId, start, to)(0);
      while (first.total > MAX_EVENTS && to - start > 1) {
        to = start + Math.max(1, Math.floor(((to - start) * MAX_EVENTS) / first.total / 2));
        first = await find(zoneId, start, to)(0);
      }
      const others = find(zoneId, start, to);
      const pages = readPages((page) => (page === 0 ? Promise.resolve(first) : others(page)), WHOLE, LIMIT);
      // An event that comes between two pages moves others to the next one, where they are found again.
      const events = new Map<string, ArchivedEvent>();
      for await (const page of pages) for (const event of toEvents(page)) events.set(keyOf(event), event);
      if (events.size > 0) return [...events.values()].reverse();
      start = to;
    }
    return [];
  };
}
