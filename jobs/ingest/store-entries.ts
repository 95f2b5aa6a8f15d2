import type { Database, Queryable } from "#db/client.ts";
import { toEventRows } from "#db/ingest/event-rows.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { type StoredPage, storePage } from "#db/ingest/store-page.ts";
import type { PartitionKeeper } from "#db/postgres/partition-keeper.ts";
import type { Clock } from "#lib/clock.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { acceptedAt } from "#stages/ingest/accepted-times.ts";
import { countEvents } from "#stages/ingest/count-events.ts";
import { listDays } from "#stages/ingest/digest-list-page.ts";
import { toHeldBack } from "#stages/ingest/held-back.ts";
import type { IngestObserver } from "#stages/ingest/ingest-observer.ts";
import type { OpenedPage } from "#stages/ingest/open-page.ts";
import { preparePage } from "#stages/ingest/prepare-page.ts";
import type { EntryReader } from "#stages/ingest/read-entries.ts";
import { packUnlistedRecords } from "./pack-unlisted-records.ts";

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

/** Entries of a span, as the platform returned them, with the reader that turns them into events. */
export interface EntriesToStore<Entry> extends EntryReader<Entry> {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  readonly entries: Omit<OpenedPage, "envelope">;
  /** Size of the platform's answer. */
  readonly bytes: number;
  /** True if the events are probably all new. */
  readonly expectNew: boolean;
  /** True if the answer is not recognised as the zone's: the entries are quarantined, and no event is stored. */
  readonly isHeldBack?: boolean;
  /** Called once with the page's events, before they are stored. */
  readonly onEvents?: ((events: readonly WafEvent[]) => void) | undefined;
  /** Runs in the same transaction, before the fence is checked. */
  readonly conclude: (tx: Queryable, stored: StoredPage) => Promise<unknown>;
}

/**
 * Stores entries of the routes with the search language, which have every dimension. While the list still shows the
 * day, the record comes from the list, because the list's record has more fields.
 */
export async function storeEntries<Entry>(
  deps: StoreEntriesDeps,
  page: EntriesToStore<Entry>,
): Promise<{ events: number; inserted: number }> {
  const { database, partitions, clock, observer, erasures } = deps;
  const { zoneId, lease, entries, bytes, expectNew, schema, toEvent, conclude } = page;
  const storedAt = clock();
  const source = { route: "search", schema, toEvent, day: null, accepted: acceptedAt(storedAt) } as const;
  const { events, records, quarantined, firstAt, lastAt } = preparePage(
    page.isHeldBack === true ? { ...entries, records: [] } : entries,
    source,
  );
  const heldBack =
    page.isHeldBack === true ? toHeldBack(entries.records, { ...source, receivedAt: storedAt }) : [];
  page.onEvents?.(events);
  const rawBlocks = await packUnlistedRecords(database.db, zoneId, { events, records }, storedAt);
  const rows = toEventRows(zoneId, events);
  const newEvents = { rows, size: events.length, firstAt, lastAt, counts: countEvents(events) };
  const newPage = {
    zoneId,
    lease,
    events: newEvents,
    expectNew,
    storedAt,
    quarantined: [...quarantined, ...heldBack],
    rawBlocks,
    erasures,
  };
  const commitsAt = performance.now();
  const { stored } = await partitions.withDays(listDays(events), () =>
    storePage(database, newPage, conclude),
  );
  const commitMs = performance.now() - commitsAt;
  const facts = { entries: entries.records.length, bytes, commitMs, ...stored };
  observer.pageStored({ route: "search", zoneId, ...facts });
  if (stored.inserted + stored.filled > 0) deps.afterPage();
  return { events: events.length, inserted: stored.inserted };
}
