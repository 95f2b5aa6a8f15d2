import type { Database, Queryable } from "../client.ts";
import { inTransaction } from "../transaction.ts";
import { assertFence } from "./leases.ts";
import { type NewQuarantinedEntry, quarantineEntries } from "./quarantine.ts";
import { insertRawBlocks, type NewRawBlock } from "./raw-blocks.ts";
import { type NewEvents, storeEvents } from "./store-events.ts";

export interface NewPage {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  readonly events: NewEvents;
  readonly expectNew: boolean;
  readonly quarantined: readonly NewQuarantinedEntry[];
  readonly rawBlocks: readonly NewRawBlock[];
}

export interface StoredPage {
  readonly inserted: number;
  readonly filled: number;
  readonly quarantined: number;
}

/**
 * One page of the platform in one transaction: events, stale minutes, hour counts, records, what was set aside, and
 * whatever `conclude` adds (ledger, cursor). All of it or, when the lease has passed to another, nothing.
 * @throws {FenceLostError}
 */
export async function storePage<T>(
  database: Database,
  page: NewPage,
  conclude: (tx: Queryable, stored: StoredPage) => Promise<T>,
): Promise<{ stored: StoredPage; concluded: T }> {
  return inTransaction(database, async (transaction) => {
    const { tx } = transaction;
    const { zoneId, expectNew } = page;
    const events = await storeEvents(transaction, zoneId, page.events, { expectNew });
    await insertRawBlocks(tx, zoneId, page.rawBlocks);
    const quarantined = await quarantineEntries(tx, zoneId, page.quarantined);
    const stored = { ...events, quarantined };
    const concluded = await conclude(tx, stored);
    await assertFence(tx, page.lease.name, page.lease.fence);
    return { stored, concluded };
  });
}
