/** Stores entries and packs their records. */

import { randomBytes } from "node:crypto";
import type { Database, Queryable } from "#db/client.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { readLogIdHashes } from "#db/ingest/raw-blocks.ts";
import { type StoredPage, storePage } from "#db/ingest/store-page.ts";
import type { PartitionKeeper } from "#db/postgres/partitions.ts";
import { readServerSecret } from "#db/service/server-facts.ts";
import type { Clock } from "#lib/clock.ts";
import { firstListedDay } from "#model/horizon.ts";
import { packRawBlocks, type RawBlock } from "#model/raw-block.ts";
import { daysOf, hashEventKey, spanOf, unpackLogIdHashes } from "#model/waf-event.ts";
import type { EventRecord, IngestObserver, ReadPage } from "#stages/ingest/read-page.ts";

export interface StoreEntriesDeps {
  readonly database: Database;
  readonly partitions: PartitionKeeper;
  readonly clock: Clock;
  readonly observer: IngestObserver;
  /** Called after each page that changed something. */
  readonly afterPage: () => unknown;
  /** Keeps erased data from being stored again. Without it a page that may hold erased data is refused. */
  readonly erasures?: ErasureGuard;
}

/** Entries of a span, as the platform returned them. */
interface EntriesToStore extends ReadPage {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  /** Size of the platform's answer. */
  readonly bytes: number;
  /** True if the events are probably all new. */
  readonly expectNew: boolean;
  /** Runs in the same transaction, before the fence is checked. */
  readonly conclude: (tx: Queryable, stored: StoredPage) => Promise<unknown>;
}

/**
 * Stores entries of the routes with the search language, which have every dimension. While the list still shows the
 * day, the record comes from the list, because the list's record has more fields. Returns the number of new events.
 */
export async function storeEntries(
  { database, partitions, clock, observer, afterPage, erasures }: StoreEntriesDeps,
  { bytes, records, conclude, ...entries }: EntriesToStore,
): Promise<number> {
  const { zoneId, events, quarantined } = entries;
  const storedAt = clock();
  const unlisted = records.filter(({ occurredAt }) => occurredAt < firstListedDay(storedAt));
  const rawBlocks = await packNewRecords(database.db, zoneId, unlisted);
  const page = { ...entries, storedAt, rawBlocks, erasures };
  const commitsAt = performance.now();
  const { stored } = await partitions.withDays(daysOf(events), () => storePage(database, page, conclude));
  const commitMs = performance.now() - commitsAt;
  const count = events.length + quarantined.length;
  observer.pageStored({ route: "search", zoneId, entries: count, bytes, commitMs, ...stored });
  if (stored.inserted + stored.filled > 0) afterPage();
  return stored.inserted;
}

/**
 * Packs the records that no block holds, neither a stored one nor one of `before`, which may not be stored yet. A crash
 * before the blocks are stored, or a second runner, at worst keeps one record twice.
 */
export async function packNewRecords(
  db: Queryable,
  zoneId: number,
  records: readonly EventRecord[],
  before: readonly RawBlock[] = [],
): Promise<RawBlock[]> {
  const span = spanOf(records);
  if (span === null) return [];
  const { firstAt: fromMs, lastAt: toMs } = span;
  const packed = await readLogIdHashes(db, zoneId, { fromMs, toMs, days: daysOf(records) });
  const held = [...packed, ...before.map(({ logIdHashes }) => logIdHashes)];
  const kept = new Set(held.flatMap(unpackLogIdHashes));
  const entries = records.map((record) => ({ ...record, logIdHash: hashEventKey(record) }));
  return packRawBlocks(entries.filter(({ logIdHash }) => !kept.has(logIdHash)));
}

const keys = new WeakMap<Database, string>();

/**
 * Returns the key of the hashes of matched texts. The first process that asks for the key makes it; all replicas have the same
 * one. The key stays in memory.
 */
export async function readHashKey(database: Database): Promise<string> {
  const known = keys.get(database);
  if (known !== undefined) return known;
  const key = (await readServerSecret(database.db, "matched-text", randomBytes(32))).toString("hex");
  keys.set(database, key);
  return key;
}
