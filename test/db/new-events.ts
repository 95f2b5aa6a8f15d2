import { randomUUID } from "node:crypto";
import type { Database } from "#db/client.ts";
import { toEventRows } from "#db/ingest/event-rows.ts";
import type { NewEvents, StoredEvents } from "#db/ingest/store-events.ts";
import { storePage } from "#db/ingest/store-page.ts";
import { acquireLease } from "#db/service/leases.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { countEvents } from "#stages/ingest/count-events.ts";

function toNewEvents(zoneId: number, events: readonly WafEvent[]): NewEvents {
  const times = events.map(({ occurredAt }) => occurredAt);
  return {
    rows: toEventRows(zoneId, events),
    size: events.length,
    firstAt: times.length === 0 ? null : times.reduce((a, b) => Math.min(a, b)),
    lastAt: times.length === 0 ? null : times.reduce((a, b) => Math.max(a, b)),
    counts: countEvents(events),
  };
}

/** Stores events as a page of ingest, under a lease of its own. */
export async function storeEvents(
  database: Database,
  zoneId: number,
  events: readonly WafEvent[],
  { expectNew }: { expectNew: boolean },
): Promise<StoredEvents> {
  const name = `test.${randomUUID()}`;
  const fence = await acquireLease(database.db, { name, holder: name, ttlMs: 600_000 });
  if (fence === null) throw new Error("a lease that nobody knows is taken");
  const page = {
    zoneId,
    lease: { name, fence },
    expectNew,
    storedAt: Date.now(),
    quarantined: [],
    rawBlocks: [],
  };
  const { stored } = await storePage(database, { ...page, events: toNewEvents(zoneId, events) }, () =>
    Promise.resolve(),
  );
  return { inserted: stored.inserted, filled: stored.filled, reopened: stored.reopened };
}
