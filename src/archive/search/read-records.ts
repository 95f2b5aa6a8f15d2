/** Reads events in their order, and their records. */

import type { OpenedBlocks } from "#archive/rules/records/find-records.ts";
import {
  fetchOnward,
  fetchRecords,
  findRowsAt,
  readFoundRows,
  readRecords as readPlaced,
  readRows,
} from "#archive/rules/sql/find-rows.ts";
import { type ArchiveFile, readArchivedDays } from "#db/archive/archived-days.ts";
import { type OnwardQuery, searchOnward } from "#db/archive/open-rows.ts";
import { inSearchView } from "#db/archive/search-condition.ts";
import { readBlockRecords } from "#jobs/archive/copy-records.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import { type ArchivedEvent, type EventKey, hashZoneEventKey, type ZoneEventKey } from "#model/waf-event.ts";
import type { SearchDeps } from "./searching.ts";

/** An event, and where its record is if its day is archived. */
export interface FoundEvent extends ArchivedEvent {
  /** Null if the event is in Postgres, and so is its record. */
  readonly archived: { readonly records: ArchiveFile | null; readonly row: number } | null;
}

export interface RecordDeps extends SearchDeps {
  readonly openedBlocks: OpenedBlocks;
}

type Records = (Buffer | undefined)[];

/** An event, as far as its record depends on it. */
type Placed = EventKey & Pick<FoundEvent, "archived">;
type ZonePlaced = Placed & ZoneEventKey;

/** Place of a record: row of a records file. */
interface Place {
  readonly records: ArchiveFile;
  readonly row: number;
}

/** Returns the next events as `readOnward` does, with their records if they are asked for. */
export async function readStored(
  deps: RecordDeps,
  zoneId: number,
  { withRecords, ...page }: OnwardQuery & { readonly withRecords: boolean },
  signal: AbortSignal,
) {
  const events = await readOnward(deps, zoneId, page, signal);
  const records = withRecords ? await readRecords(deps, zoneId, events, signal) : [];
  return events.map((event, index) => ({ ...event, record: records[index] }));
}

/** Returns the record of each of these events of a zone, in their order; undefined where none is kept. */
export function readRecords(
  deps: RecordDeps,
  zoneId: number,
  events: readonly Placed[],
  signal: AbortSignal,
): Promise<Records> {
  const zoned = events.map(({ occurredAt, logId, archived }) => ({ zoneId, occurredAt, logId, archived }));
  return readZoneRecords(deps, zoned, signal);
}

/** Returns the same for events of several zones. */
export async function readZoneRecords(
  deps: RecordDeps,
  events: readonly ZonePlaced[],
  signal: AbortSignal,
): Promise<Records> {
  const open = events.filter(({ archived }) => archived === null);
  const fromBlocks = await readBlockRecords({ db: deps.queries.db, openedBlocks: deps.openedBlocks }, open);
  const missing = open.filter((event) => !fromBlocks.has(hashZoneEventKey(event)));
  const moved = await findMoved(deps, missing, signal);
  const placeOf = (event: ZonePlaced): Place | undefined => {
    const { archived } = event;
    if (archived === null) return moved.get(hashZoneEventKey(event));
    return archived.records === null ? undefined : { records: archived.records, row: archived.row };
  };
  const places = events.map(placeOf);
  const fromFiles = await readFromFiles(
    deps,
    places.filter((place) => place !== undefined),
    signal,
  );
  return events.map((event, index) => {
    const place = places[index];
    if (place !== undefined) return fromFiles.get(keyOf(place));
    return fromBlocks.get(hashZoneEventKey(event));
  });
}

/**
 * Returns the places of events that were in Postgres when they were found, and whose day has moved into the archive since
 * then.
 */
async function findMoved(
  { queries: { db }, files }: RecordDeps,
  events: readonly ZonePlaced[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Place>> {
  const moved = new Map<string, Place>();
  for (const [from, ofDay] of Map.groupBy(events, ({ occurredAt }) => startOfDay(occurredAt))) {
    const zoneIds = [...new Set(ofDay.map(({ zoneId }) => zoneId))];
    const days = await readArchivedDays(db, zoneIds, { from, to: from + DAY_MS });
    for (const day of days) {
      if (day.records === null) continue;
      const { zoneId } = day;
      const own = ofDay.filter((event) => event.zoneId === zoneId);
      const times = [...new Set(own.map(({ occurredAt }) => occurredAt))];
      const statement = findRowsAt(files.pathOf(day.events), times);
      const wanted = new Set(own.map(hashZoneEventKey));
      for (const { row, ...key } of readFoundRows(await files.read([day.events], [statement], signal))) {
        const hash = hashZoneEventKey({ zoneId, ...key });
        if (wanted.has(hash)) moved.set(hash, { records: day.records, row });
      }
    }
  }
  return moved;
}

function keyOf({ records, row }: Place): string {
  return `${records.path} ${row}`;
}

/** Returns the records by `keyOf` their places. */
async function readFromFiles(
  { files }: RecordDeps,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Buffer>> {
  if (places.length === 0) return new Map();
  const parts = Array.from(Map.groupBy(places, ({ records }) => records.path).values(), (ofFile) => ({
    file: (ofFile[0] as Place).records,
    rows: ofFile.map(({ row }) => row),
  }));
  const statement = fetchRecords(parts.map(({ file, rows }) => ({ ...files.eventsFileOf(file), rows })));
  const found = readPlaced(
    await files.read(
      parts.map(({ file }) => file),
      [statement],
      signal,
    ),
  );
  return new Map(
    found.flatMap(({ file, row, record }) => {
      const records = parts[file]?.file;
      return record === undefined || records === undefined ? [] : [[keyOf({ records, row }), record]];
    }),
  );
}

/**
 * Returns the next events of a part of one UTC day, oldest first, wherever they are kept; those of one millisecond by log
 * id, byte by byte. A position is an event, so a page stays the same when its day moves into the archive.
 */
export async function readOnward(
  { queries, files }: SearchDeps,
  zoneId: number,
  page: OnwardQuery,
  signal: AbortSignal,
): Promise<FoundEvent[]> {
  const found = await inSearchView(queries, signal, async (tx) => {
    const [day] = await readArchivedDays(tx, zoneId, page);
    return day ?? (await searchOnward(tx, zoneId, page));
  });
  if (Array.isArray(found)) return found.map((event) => ({ ...event, archived: null }));
  const { events, records } = found;
  const rows = await files.read([events], [fetchOnward(files.eventsFileOf(events), page)], signal);
  return readRows(rows).map(({ file: _file, row, ...event }) => ({ ...event, archived: { records, row } }));
}
