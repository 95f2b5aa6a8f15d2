import type { Database, Queryable } from "../client.ts";
import { inOneTrip } from "../one-trip.ts";
import { readSqlState } from "../sql-state.ts";
import { inTransaction } from "../transaction.ts";
import { assertFence } from "./leases.ts";
import { type NewQuarantinedEntry, quarantineEntries } from "./quarantine.ts";
import { insertRawBlocks, type NewRawBlock } from "./raw-blocks.ts";
import { copyNewEvents, mergeEvents, type NewEvents, recordCounts } from "./store-events.ts";

const UNIQUE_VIOLATION = "23505";

export interface NewPage {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  readonly events: NewEvents;
  readonly expectNew: boolean;
  /** Epoch ms; when the hours that gain an event last did. */
  readonly storedAt: number;
  readonly quarantined: readonly NewQuarantinedEntry[];
  readonly rawBlocks: readonly NewRawBlock[];
}

export interface StoredPage {
  readonly inserted: number;
  readonly filled: number;
  readonly quarantined: number;
}

type Conclude<T> = (tx: Queryable, stored: StoredPage) => Promise<T>;

/**
 * One page of the platform in one transaction: events, stale minutes, hour counts, records, what was set aside, and
 * whatever `conclude` adds (ledger, cursor). All of it or, when the lease has passed to another, nothing.
 * With `expectNew` the events are copied straight into the table, and staged in a second transaction only when one of
 * them turns out to be known: say so where the page before brought nothing but new events.
 * @throws {FenceLostError}
 */
export async function storePage<T>(
  database: Database,
  page: NewPage,
  conclude: Conclude<T>,
): Promise<{ stored: StoredPage; concluded: T }> {
  if (!page.expectNew || page.events.size === 0) return mergePage(database, page, conclude);
  try {
    return await copyPage(database, page, conclude);
  } catch (thrown) {
    if (readSqlState(thrown) !== UNIQUE_VIOLATION) throw thrown;
    return mergePage(database, page, conclude);
  }
}

function copyPage<T>(database: Database, page: NewPage, conclude: Conclude<T>) {
  return inTransaction(database, async ({ tx, client }) => {
    const { zoneId, events, lease, storedAt } = page;
    await copyNewEvents(client, events);
    const quarantined = await quarantineEntries(tx, zoneId, page.quarantined);
    const stored = { inserted: events.size, filled: 0, quarantined };
    const [, , concluded] = await inOneTrip(client, () => [
      recordCounts(tx, { zoneId, counts: events.counts, storedAt }),
      insertRawBlocks(tx, zoneId, page.rawBlocks),
      conclude(tx, stored),
      assertFence(tx, lease.name, lease.fence),
    ]);
    return { stored, concluded };
  });
}

function mergePage<T>(database: Database, page: NewPage, conclude: Conclude<T>) {
  return inTransaction(database, async (transaction) => {
    const { tx, client } = transaction;
    const { zoneId, lease } = page;
    const merged = await mergeEvents(transaction, page, page.events);
    const quarantined = await quarantineEntries(tx, zoneId, page.quarantined);
    const stored = { ...merged, quarantined };
    const [, concluded] = await inOneTrip(client, () => [
      insertRawBlocks(tx, zoneId, page.rawBlocks),
      conclude(tx, stored),
      assertFence(tx, lease.name, lease.fence),
    ]);
    return { stored, concluded };
  });
}
