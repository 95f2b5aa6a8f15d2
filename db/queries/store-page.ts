import { sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { inOneTrip } from "../one-trip.ts";
import { readSqlState } from "../sql-state.ts";
import { inTransaction, type Transaction } from "../transaction.ts";
import {
  type Emptied,
  type ErasureGuard,
  enterEmptied,
  eraseCovered,
  eraseFromBlocks,
  eraseFromQuarantine,
} from "./guard-page.ts";
import { assertFence } from "./leases.ts";
import { type NewQuarantinedEntry, quarantineEntries } from "./quarantine.ts";
import { insertRawBlocks, type NewRawBlock } from "./raw-blocks.ts";
import {
  copyNewEvents,
  mergeEvents,
  type NewEvents,
  recordCounts,
  type StoredEvents,
} from "./store-events.ts";
import { holdTombstones, type TombstoneRow } from "./tombstones.ts";

const UNIQUE_VIOLATION = "23505";
/** Longer ago no event of a page is: ingest takes none that is older than ten days. */
const OLDEST_ENTRY_MS = 11 * 86_400_000;

export interface NewPage {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  readonly events: NewEvents;
  readonly expectNew: boolean;
  /** Epoch ms; when the hours that gain an event last did. */
  readonly storedAt: number;
  readonly quarantined: readonly NewQuarantinedEntry[];
  readonly rawBlocks: readonly NewRawBlock[];
  /** Without one, a page that a tombstone may cover is refused. */
  readonly erasures?: ErasureGuard | undefined;
}

export interface StoredPage {
  readonly inserted: number;
  readonly filled: number;
  readonly quarantined: number;
  /** Sealed hours that gained an event and are open again; epoch ms of their starts. */
  readonly reopened: readonly number[];
}

type Conclude<T> = (tx: Queryable, stored: StoredPage) => Promise<T>;

/**
 * One page of the platform in one transaction: events, stale minutes, hour counts, records, what was set aside, and
 * whatever `conclude` adds (ledger, cursor). All of it or, when the lease has passed to another, nothing.
 * With `expectNew` the events are copied straight into the table, and staged in a second transaction only when one of
 * them turns out to be known: say so where the page before brought nothing but new events. Of what was erased nothing
 * comes back.
 * @throws {FenceLostError}
 */
export async function storePage<T>(
  database: Database,
  page: NewPage,
  conclude: Conclude<T>,
): Promise<{ stored: StoredPage; concluded: T }> {
  if (!page.expectNew || page.events.size === 0) return mergePage(database, page, conclude);
  try {
    return (await copyPage(database, page, conclude)) ?? (await mergePage(database, page, conclude));
  } catch (thrown) {
    if (readSqlState(thrown) !== UNIQUE_VIOLATION) throw thrown;
    return mergePage(database, page, conclude);
  }
}

/** Null, and nothing stored, where a tombstone may cover an event: then it has to be staged. */
function copyPage<T>(database: Database, page: NewPage, conclude: Conclude<T>) {
  return inTransaction(database, async ({ tx, client }) => {
    const { zoneId, events, lease, storedAt } = page;
    if ((await readCovering({ tx, client }, page)).length > 0) return null;
    if (await hasAliases(tx, zoneId, events)) return null;
    await copyNewEvents(client, events);
    const quarantined = await quarantineEntries(tx, zoneId, page.quarantined);
    const stored = { inserted: events.size, filled: 0, quarantined, reopened: [] };
    const [reopened, , concluded] = await inOneTrip(client, () => [
      recordCounts(tx, { zoneId, counts: events.counts, storedAt }),
      insertRawBlocks(tx, zoneId, page.rawBlocks),
      conclude(tx, stored),
      assertFence(tx, lease.name, lease.fence),
    ]);
    return { stored: { ...stored, reopened }, concluded };
  });
}

function mergePage<T>(database: Database, page: NewPage, conclude: Conclude<T>) {
  return inTransaction(database, async (transaction) => {
    const { tx, client } = transaction;
    const { zoneId, lease } = page;
    const tombstones = await readCovering(transaction, page);
    const { merged, emptied, ...others } =
      tombstones.length === 0
        ? { merged: await mergeEvents(transaction, page, page.events), emptied: [], ...page }
        : await mergeGuarded(transaction, page, tombstones);
    const quarantined = await quarantineEntries(tx, zoneId, others.quarantined);
    const stored = { ...merged, quarantined };
    const [, concluded] = await inOneTrip(client, () => [
      insertRawBlocks(tx, zoneId, others.rawBlocks),
      conclude(tx, stored),
      assertFence(tx, lease.name, lease.fence),
    ]);
    await enterEmptied(tx, emptied);
    return { stored, concluded };
  });
}

/** Whether an event of the page's time is stored under another time: such a page has to be staged. */
async function hasAliases(tx: Queryable, zoneId: number, { firstAt, lastAt }: NewEvents): Promise<boolean> {
  if (firstAt === null || lastAt === null) return false;
  const { rows } = await tx.execute<{ found: boolean }>(sql`
    select exists(select from event_aliases where zone_id = ${zoneId}
      and other_at between ${new Date(firstAt)} and ${new Date(lastAt)}) as found`);
  return rows[0]?.found ?? false;
}

/** A page that brings nothing, because it is known, needs none. */
async function readCovering({ tx, client }: Transaction, page: NewPage): Promise<TombstoneRow[]> {
  const { zoneId, events, quarantined, storedAt } = page;
  if (events.size === 0 && quarantined.length === 0) return [];
  return holdTombstones(tx, client, { zoneId, sinceMs: events.firstAt ?? storedAt - OLDEST_ENTRY_MS });
}

interface GuardedPage extends Pick<NewPage, "quarantined" | "rawBlocks"> {
  readonly merged: StoredEvents;
  readonly emptied: readonly Emptied[];
}

async function mergeGuarded(
  transaction: Transaction,
  page: NewPage,
  tombstones: readonly TombstoneRow[],
): Promise<GuardedPage> {
  const { tx } = transaction;
  const { zoneId, erasures: guard, events } = page;
  if (guard === undefined) throw new Error("a page that an erasure may cover has nobody to keep it out");
  const match = await guard.match(tombstones);
  const merged = await mergeEvents(transaction, page, events);
  const { firstAt, lastAt } = events;
  const open = await Promise.all(
    tombstones
      .filter(({ isOpen }) => isOpen)
      .map(async (one) => ({ id: one.id, match: await guard.match([one]) })),
  );
  const { erased, emptied } =
    firstAt === null || lastAt === null || events.size === 0
      ? { erased: [], emptied: [] }
      : await eraseCovered(tx, zoneId, { firstAt, lastAt }, { match, open, eraser: guard });
  return {
    merged,
    emptied,
    quarantined: await eraseFromQuarantine(page.quarantined, match, guard),
    rawBlocks: await eraseFromBlocks(page.rawBlocks, erased, guard),
  };
}
