/** Reads records, and a day's list of them. */

import type { OpenedBlocks } from "#archive/rules/records/find-records.ts";
import {
  countUpTo,
  fetchRecords,
  findRowsAt,
  readFoundRows,
  readRecords as readPlaced,
} from "#archive/rules/sql/find-rows.ts";
import { type ArchiveFile, readArchivedDays } from "#db/archive/archived-days.ts";
import { searchOnward } from "#db/archive/open-rows.ts";
import { inSearchTransaction } from "#db/archive/search-condition.ts";
import { runCancellable } from "#db/postgres/transaction.ts";
import { readBlockRecords } from "#jobs/archive/copy-records.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import { type EventKey, hashEventKey } from "#model/waf-event.ts";
import { type FoundEvent, readArchivedRows } from "./find-rows.ts";
import type { SearchDeps } from "./searching.ts";

export interface RecordDeps extends SearchDeps {
  readonly openedBlocks: OpenedBlocks;
}

type Records = (Buffer | undefined)[];

/** An event, as far as its record depends on it. */
type Placed = EventKey & Pick<FoundEvent, "archived">;

/** Place of a record: row of a records file. */
interface Place {
  readonly records: ArchiveFile;
  readonly row: number;
}

/** Returns the record of each of these events, in their order; undefined where none is kept. */
export async function readRecords(
  deps: RecordDeps,
  zoneId: number,
  events: readonly Placed[],
  signal: AbortSignal,
): Promise<Records> {
  const open = events.filter(({ archived }) => archived === null);
  const fromBlocks = await readBlockRecords(
    { db: deps.queries.db, openedBlocks: deps.openedBlocks },
    zoneId,
    open,
  );
  const missing = open.filter((event) => !fromBlocks.has(hashEventKey(event)));
  const moved = await findMoved(deps, zoneId, missing, signal);
  const placeOf = (event: Placed): Place | undefined => {
    const { archived } = event;
    if (archived === null) return moved.get(hashEventKey(event));
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
    return fromBlocks.get(hashEventKey(event));
  });
}

/**
 * Returns the places of events that were in Postgres when they were found, and whose day has moved into the archive since
 * then.
 */
async function findMoved(
  { queries: { db }, files }: RecordDeps,
  zoneId: number,
  events: readonly Placed[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Place>> {
  const moved = new Map<string, Place>();
  for (const [from, ofDay] of Map.groupBy(events, ({ occurredAt }) => startOfDay(occurredAt))) {
    const [day] = await readArchivedDays(db, zoneId, { from, to: from + DAY_MS });
    if (day?.records == null) continue;
    const times = [...new Set(ofDay.map(({ occurredAt }) => occurredAt))];
    const statement = findRowsAt(files.pathOf(day.events), times);
    const wanted = new Set(ofDay.map(hashEventKey));
    for (const { row, ...key } of readFoundRows(await files.read([day.events], [statement], signal))) {
      const hash = hashEventKey(key);
      if (wanted.has(hash)) moved.set(hash, { records: day.records, row });
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

interface DayPage {
  /** Start of the UTC day, epoch ms. */
  readonly from: number;
  /** The last event of the previous page; null for the first page. */
  readonly after: { readonly occurredAt: number; readonly logId: string } | null;
  readonly limit: number;
}

/**
 * Returns the next events of a day after a position, oldest first; those of one millisecond by log id, byte by byte. A
 * position is an event, so a page stays the same when its day moves into the archive.
 */
export async function listDay(
  { queries, files }: SearchDeps,
  zoneId: number,
  { from, after, limit }: DayPage,
  signal: AbortSignal,
): Promise<FoundEvent[]> {
  const window = { from, to: from + DAY_MS };
  const found = await runCancellable(queries, signal, (database) =>
    inSearchTransaction(database, async (tx) => {
      const [day] = await readArchivedDays(tx, zoneId, window);
      return day === undefined
        ? { events: await searchOnward(tx, zoneId, { ...window, clauses: [], after, limit }) }
        : { day };
    }),
  );
  if ("events" in found) return found.events.map((event) => ({ ...event, archived: null }));
  const { day } = found;
  const first = after === null ? 0 : await skipTo(files, day.events, after, signal);
  const count = Math.min(limit, day.rows - first);
  return count <= 0 ? [] : readArchivedRows(files, [{ day, rows: { first, count } }], signal);
}

async function skipTo(
  files: SearchDeps["files"],
  file: Parameters<SearchDeps["files"]["pathOf"]>[0],
  after: NonNullable<DayPage["after"]>,
  signal: AbortSignal,
): Promise<number> {
  const [row = "[0]"] = await files.read([file], [countUpTo(files.pathOf(file), after)], signal);
  return (JSON.parse(row) as [number])[0];
}
