import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { OpenedBlocks } from "#archive/rules/records/find-records.ts";
import { fetchOnward, fetchRecords, readRecords, readRows } from "#archive/rules/sql/find-rows.ts";
import type { Piece } from "#archive/rules/sql/to-condition.ts";
import { readArchivedDays } from "#db/archive/archived-days.ts";
import { bringCurrent } from "#db/archive/bring-file.ts";
import { searchOnward } from "#db/archive/open-rows.ts";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import type { Database } from "#db/client.ts";
import type { Span } from "#model/horizon.ts";
import { type ArchivedEvent, type EventKey, hashEventKey } from "#model/waf-event.ts";
import type { ArchiveStore } from "../../archive/archive-store.ts";
import { readBlockRecords } from "../../archive/copy-records.ts";

export interface StoredReader {
  readonly database: Database;
  /** Null: every day is in Postgres. */
  readonly archive: ArchiveStore | null;
  readonly openedBlocks: OpenedBlocks;
}

/** A stored event, with its record if it was asked for and is kept. */
export interface StoredEvent extends ArchivedEvent {
  readonly record: Buffer | undefined;
}

/** Events of a part of one UTC day that are read next, oldest first. */
export interface StoredPage extends Span, Pick<SearchPlan, "clauses"> {
  readonly after: EventKey | null;
  readonly limit: number;
  readonly withRecords: boolean;
}

/** Returns the next events of a zone, wherever they are kept. */
export async function readStored(
  reader: StoredReader,
  zoneId: number,
  page: StoredPage,
  signal: AbortSignal,
): Promise<StoredEvent[]> {
  const found = await inSearchTransaction(reader.database, async (tx) => {
    const [day] = await readArchivedDays(tx, zoneId, page);
    return day ?? (await searchOnward(tx, zoneId, page));
  });
  if (Array.isArray(found)) {
    const { db } = reader.database;
    const records = page.withRecords
      ? await readBlockRecords({ db, openedBlocks: reader.openedBlocks }, zoneId, found)
      : null;
    return found.map((event) => ({ ...event, record: records?.get(hashEventKey(event)) }));
  }
  const { archive } = reader;
  if (archive === null) throw new Error("there are archive days, but no archive folder was given");
  const run = async (statement: Piece) => {
    const [rows = []] = await archive.duckdb.run([statement], { signal });
    // Every statement selects one JSON text.
    return rows.map(([row]) => row as string);
  };
  const place = { db: reader.database.db, storage: archive.storage };
  const file = await bringCurrent(place, found.events, signal);
  const rows = readRows(await run(fetchOnward({ path: file, format: found.events.format }, page, page)));
  if (!page.withRecords || found.records === null || rows.length === 0)
    return rows.map((event) => ({ ...event, record: undefined }));
  const path = await bringCurrent(place, found.records, signal);
  const placed = readRecords(
    await run(fetchRecords([{ path, format: found.records.format, rows: rows.map(({ row }) => row) }])),
  );
  const records = new Map(placed.map(({ row, record }) => [row, record]));
  return rows.map((event) => ({ ...event, record: records.get(event.row) }));
}
