import { findRecordBlocks, readRecordBlocks } from "../../../db/archive/archive-records.ts";
import type { ArchiveFile } from "../../../db/archive/archived-days.ts";
import { findRecords } from "../../archive/records/find-records.ts";
import type { OpenedBlocks } from "../../archive/records/opened-blocks.ts";
import { fetchRecords, readRecords as readPlaced } from "../../archive/sql/find-rows.ts";
import { hashEventKey } from "../../model/log-id-hash.ts";
import type { SearchDeps } from "./search-deps.ts";
import type { FoundEvent } from "./search-rows.ts";

export interface RecordDeps extends SearchDeps {
  readonly openedBlocks: OpenedBlocks;
}

type Records = (Buffer | undefined)[];

/** Returns the record of each of these events, in their order; undefined where none is kept. */
export async function readRecords(
  deps: RecordDeps,
  zoneId: number,
  events: readonly FoundEvent[],
  signal: AbortSignal,
): Promise<Records> {
  const open = events.filter(({ archived }) => archived === null);
  const [fromBlocks, fromFiles] = [
    await readFromBlocks(deps, zoneId, open),
    await readFromFiles(deps, events, signal),
  ];
  return events.map((event) => {
    const { archived } = event;
    if (archived === null) return fromBlocks.get(hashEventKey(event));
    return archived.records === null ? undefined : fromFiles.get(`${archived.records.path} ${archived.row}`);
  });
}

async function readFromBlocks(
  { archive: { db }, openedBlocks }: RecordDeps,
  zoneId: number,
  events: readonly FoundEvent[],
): Promise<ReadonlyMap<string, Buffer>> {
  if (events.length === 0) return new Map();
  const store = {
    findBlocks: (spans: Parameters<typeof findRecordBlocks>[2]) => findRecordBlocks(db, zoneId, spans),
    readBlocks: (wanted: Parameters<typeof readRecordBlocks>[2]) => readRecordBlocks(db, zoneId, wanted),
  };
  return findRecords(store, openedBlocks, events);
}

/** Returns the records by the path of their file and their row. */
async function readFromFiles(
  { files }: RecordDeps,
  events: readonly FoundEvent[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Buffer>> {
  const wanted = new Map<string, { file: ArchiveFile; rows: number[] }>();
  for (const { archived } of events) {
    if (archived === null || archived.records === null) continue;
    const known = wanted.get(archived.records.path);
    if (known === undefined)
      wanted.set(archived.records.path, { file: archived.records, rows: [archived.row] });
    else known.rows.push(archived.row);
  }
  if (wanted.size === 0) return new Map();
  const parts = [...wanted.values()];
  const statement = fetchRecords(parts.map(({ file, rows }) => ({ path: files.pathOf(file), rows })));
  const found = readPlaced(
    await files.read(
      parts.map(({ file }) => file),
      [statement],
      signal,
    ),
  );
  return new Map(
    found.flatMap(({ file, row, record }) =>
      record === undefined ? [] : [[`${parts[file]?.file.path} ${row}`, record] as const],
    ),
  );
}
