import { enterFiles, type ManifestRow } from "#db/archive/archive-files.ts";
import { bringFile } from "#db/archive/bring-file.ts";
import type { ZoneDay } from "#db/archive/day-source.ts";
import type { Database } from "#db/client.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import type { ArchiveKind } from "#model/kinds.ts";
import type { ArchiveStore } from "./archive-store.ts";
import { inLockedDay, type LockedDay, publishDay, sumFiles } from "./publish-day.ts";
import { assertSameCounts, readRecordsWithoutEvent, writeFacts } from "./rewrite-day.ts";

/** The steps of adding facts to a day, for tests that end the process at each of them. */
export type AddFactsStep = "locked" | "written" | "published" | "entered";

export interface AddFactsDeps {
  readonly database: Database;
  readonly archive: ArchiveStore;
  readonly onStep?: (step: AddFactsStep) => unknown;
  readonly signal?: AbortSignal;
}

export interface AddedFacts {
  readonly events: number;
  /** Events with a record. */
  readonly records: number;
}

/**
 * Writes the events file of an archive day anew in the current version, with the facts of requests from the day's records.
 * Returns null and writes nothing if the day is not in the archive, or if its file is of the current version and `isForced` is
 * false. A process that ends anywhere has changed nothing but files that no manifest row names.
 */
export function addFacts(
  deps: AddFactsDeps,
  zoneDay: ZoneDay,
  { isForced = false } = {},
): Promise<AddedFacts | null> {
  return inLockedDay(deps, zoneDay, async (locked) => {
    const file = locked.files.find(({ kind }) => kind === "events");
    if (file === undefined || (file.format >= ARCHIVE_FORMAT && !isForced)) return null;
    return addLocked(deps, locked, zoneDay, file);
  });
}

async function addLocked(
  { database, archive, signal, onStep }: AddFactsDeps,
  { tx, work, files }: LockedDay,
  zoneDay: ZoneDay,
  events: ManifestRow,
): Promise<AddedFacts> {
  const { storage, duckdb } = archive;
  const bring = async (kind: ArchiveKind) => {
    const file = files.find((one) => one.kind === kind);
    return file === undefined ? null : bringFile(storage, file, signal);
  };
  const { rows, format } = events;
  const [before, records] = [await bringFile(storage, events, signal), await bring("records")];
  await onStep?.("locked");
  const wanted = { database, duckdb, zoneDay, events: before, records, rows, format, work, signal };
  const added = await writeFacts(wanted);
  const sums = await sumFiles(duckdb, added.file, { records });
  assertSameCounts(await sumFiles(duckdb, before, { records: null, format }), sums);
  signal?.throwIfAborted();
  await onStep?.("written");
  const published = await publishDay(tx, archive, {
    ...zoneDay,
    ...sums,
    events: added.file,
    records,
    recordsWithoutEvent: await readRecordsWithoutEvent(storage, zoneDay),
    signal,
  });
  await onStep?.("published");
  // The records keep their file.
  await enterFiles(
    tx,
    published.filter(({ kind }) => kind === "events"),
  );
  await onStep?.("entered");
  return { events: rows, records: added.records };
}
