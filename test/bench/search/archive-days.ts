import { mkdirSync } from "node:fs";
import path from "node:path";
import { type ArchiveReader, createArchiveReader, createSearchDuckdb } from "#db/archive/archive-reader.ts";
import type { Database } from "#db/client.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { dropPartitionsBefore } from "#db/postgres/partitions.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { DAY_MS } from "#lib/units.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { toDay } from "#model/horizon.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";

/** Days of the platform and one more are not archived yet, as in the service. */
const OPEN_DAYS = 3;
/** Postgres keeps archived days for so long. */
const HOT_DAYS = 7;
export interface ArchiveFiles {
  readonly duckdb: Duckdb;
  readonly files: ArchiveReader;
  readonly storage: ArchiveStorage;
}

/** The archive's files in a folder, with the bounds of the service. */
export function openFiles(parent: string): ArchiveFiles {
  const [folder, scratch] = [path.join(parent, "archive"), path.join(parent, "scratch")];
  for (const one of [folder, scratch]) mkdirSync(one, { recursive: true });
  const storage = createFolderStorage(folder);
  const duckdb = createSearchDuckdb(folder, scratch);
  return { duckdb, storage, files: createArchiveReader({ duckdb, storage, scratch }) };
}

/**
 * Writes every day that gains no more events into the archive, as of `nowMs`; quick where it has been done. Returns the
 * number of events that were written.
 */
export async function archiveDays(
  database: Database,
  { duckdb, storage }: ArchiveFiles,
  nowMs: number,
  onArchived: () => void,
): Promise<number> {
  const last = toDay(nowMs - OPEN_DAYS * DAY_MS);
  const { rows } = await database.pool.query<{ zoneId: number; day: string }>(
    `select zone_id as "zoneId", d.day::text from (
       select distinct zone_id, (starts_at at time zone 'UTC')::date as day from coverage_windows where stored_count > 0) d
     where day < $1::date and not exists (select from archive_files f where f.zone_id = d.zone_id and f.day = d.day)
     order by day, zone_id`,
    [last],
  );
  let events = 0;
  for (const zoneDay of rows) {
    const written = await writeDay({ database, duckdb, storage }, zoneDay);
    if (written.outcome !== "written")
      throw new Error(`${zoneDay.day} of zone ${zoneDay.zoneId}: ${written.outcome}`);
    events += written.files[0]?.rows ?? 0;
    onArchived();
  }
  await dropPartitionsBefore(database, "waf_events", toDay(nowMs - HOT_DAYS * DAY_MS));
  return events;
}
