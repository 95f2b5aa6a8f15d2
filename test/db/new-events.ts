import { randomUUID } from "node:crypto";
import type { Database } from "#db/client.ts";
import type { StoredEvents } from "#db/ingest/store-page.ts";
import { storePage } from "#db/ingest/store-page.ts";
import { acquireLease } from "#db/postgres/leases.ts";
import type { WafEvent } from "#model/waf-event.ts";

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
    events,
    lease: { name, fence },
    expectNew,
    storedAt: Date.now(),
    quarantined: [],
    rawBlocks: [],
  };
  const { stored } = await storePage(database, page, () => Promise.resolve());
  return { inserted: stored.inserted, filled: stored.filled, reopened: stored.reopened };
}
