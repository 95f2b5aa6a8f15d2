/** Follows new events, in the store or at a running service. */

import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { Config } from "#config/config.ts";
import { searchOnward } from "#db/archive/open-rows.ts";
import { listKnownZones } from "#db/proof/coverage-report.ts";
import { listZones } from "#health/service/zones.ts";
import type { Clock } from "#lib/clock.ts";
import { LAST_MS } from "#lib/units.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import type { AskOperation } from "#operations/operation.ts";
import { readPages as readList } from "../operations/remote-commands.ts";
import { requireZones } from "../options/read-options.ts";
import { findPages, readPages, toEvents } from "../search/find-pages.ts";
import { onRunningStore } from "../store/open-store.ts";

/** The members that identify and order an event. */
interface Followable {
  readonly occurredAt: number;
  readonly logId: string;
}

/** Reads a zone's events from a time on, oldest first, behind `after` if it is given. */
type ReadOnward<Event extends Followable> = (
  zoneId: number,
  from: number,
  after: Event | null,
) => Promise<readonly Event[]>;

/** A new event is looked for from so long before the newest one of its zone. */
const NEAR_MS = 15_000;
/** A late event is looked for from so long before the newest one of its zone, once in `SWEEP_POLLS`. */
export const OVERLAP_MS = 2 * 60_000;
const SWEEP_POLLS = 10;

interface Followed {
  newestAt: number;
  /** Time of each event that was returned and may be read again. */
  readonly seen: Map<string, number>;
}

/**
 * Follows the events of zones from a time on. Each poll yields, in order of time, the events that no poll has yielded. An
 * event that is stored up to two minutes late is yielded when it is found. After a failed read the next poll goes on.
 */
export function createFollower<Event extends Followable>(zoneIds: readonly number[], from: number) {
  const zones = new Map<number, Followed>();
  let untilSweep = 0;

  function watch(ids: readonly number[]): void {
    for (const id of ids) if (!zones.has(id)) zones.set(id, { newestAt: from, seen: new Map() });
  }

  async function* readZone(
    zoneId: number,
    zone: Followed,
    read: ReadOnward<Event>,
    backMs: number,
  ): AsyncGenerator<Event[]> {
    const start = Math.max(from, zone.newestAt - backMs);
    let after: Event | null = null;
    for (;;) {
      const page: readonly Event[] = await read(zoneId, start, after);
      if (page.length === 0) return;
      const unseen = page.filter((event) => !zone.seen.has(keyOf(event)));
      if (unseen.length > 0) yield unseen;
      after = page.at(-1) ?? null;
    }
  }

  async function* poll(
    read: ReadOnward<Event>,
  ): AsyncGenerator<{ readonly zoneId: number; readonly event: Event }> {
    const left = untilSweep;
    // After a failed read, the next poll looks for late events as well.
    untilSweep = 0;
    const backMs = left === 0 ? OVERLAP_MS : NEAR_MS;
    const parts = [...zones].map(([zoneId, zone]) => ({
      zoneId,
      zone,
      pages: readZone(zoneId, zone, read, backMs),
      page: [] as Event[],
    }));
    for (;;) {
      for (const part of parts)
        if (part.page.length === 0) part.page = [...((await part.pages.next()).value ?? [])].reverse();
      const [first] = parts
        .filter(({ page }) => page.length > 0)
        .sort((a, b) => (a.page.at(-1)?.occurredAt ?? 0) - (b.page.at(-1)?.occurredAt ?? 0));
      const event = first?.page.pop();
      if (first === undefined || event === undefined) break;
      note(first.zone, event);
      yield { zoneId: first.zoneId, event };
    }
    untilSweep = left === 0 ? SWEEP_POLLS - 1 : left - 1;
  }

  watch(zoneIds);
  return { watch, poll };
}

/** Remembers an event and forgets those that no later call reads again. */
function note(zone: Followed, event: Followable): void {
  zone.newestAt = Math.max(zone.newestAt, event.occurredAt);
  zone.seen.set(keyOf(event), event.occurredAt);
  for (const [key, at] of zone.seen) {
    if (at >= zone.newestAt - OVERLAP_MS) return;
    zone.seen.delete(key);
  }
}

function keyOf({ occurredAt, logId }: Followable): string {
  return `${occurredAt} ${logId}`;
}

/** An open source of events. */
interface TailReads {
  readonly readOnward: ReadOnward<ArchivedEvent>;
  readonly listZones: () => Promise<readonly number[]>;
}

/** The database, or a service elsewhere. */
export interface TailSource {
  readonly name: "database" | "service";
  /** Milliseconds between two polls of so many zones. */
  readonly pauseMs: (zones: number) => number;
  /** Opens the source for `work`, which ends when `signal` aborts. */
  readonly open: (signal: AbortSignal, work: (reads: TailReads) => Promise<void>) => Promise<void>;
}

const POLL_MS = 1_000;
const PAGE_SIZE = 500;

/** Reads the events from the database of the running service. */
export function tailHere(
  readConfig: () => Config,
  { clauses }: Pick<SearchPlan, "clauses">,
  zoneIds: readonly number[],
): TailSource {
  return {
    name: "database",
    pauseMs: () => POLL_MS,
    async open(_signal, work) {
      const config = readConfig();
      await onRunningStore(config, async ({ db }) => {
        await requireZones(db, config, zoneIds);
        await work({
          readOnward: (zoneId, from, after) =>
            searchOnward(db, zoneId, { from, to: LAST_MS, clauses, after, limit: PAGE_SIZE }),
          listZones: async () => (await listKnownZones(db)).map(({ zoneId }) => zoneId),
        });
      });
    },
  };
}

/** A poll asks at most twice for each zone. With this pause it takes half of the 600 requests a minute of a key. */
const PAUSE_PER_ZONE_MS = 400;
const MIN_PAUSE_MS = 1_000;
/** The clock of the service may differ. It accepts windows that end up to five minutes in its future. */
const AHEAD_MS = 150_000;

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
    findPages(ask, String(zoneId), { ...request, from, to }, { pageSize: PAGE_SIZE, format: "event" });

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
