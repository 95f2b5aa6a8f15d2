import { mkdtempSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ArchiveReader, createArchiveReader } from "#db/archive/archive-reader.ts";
import type { ArchiveDamagedError } from "#db/archive/bring-file.ts";
import type { Database } from "#db/client.ts";
import { rollUpBatch } from "#db/detection/roll-up.ts";
import { createDuckdb, type Duckdb } from "#db/duckdb/duckdb.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { DAY_MS } from "#lib/units.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { atEnd } from "#test/support/at-end.ts";

export interface ArchiveFolder {
  readonly folder: string;
  readonly storage: ArchiveStorage;
  readonly duckdb: Duckdb;
  readonly files: ArchiveReader;
  /** The files that were found missing or damaged. */
  readonly damaged: ArchiveDamagedError[];
  close(): Promise<void>;
}

const root = mkdtempSync(path.join(tmpdir(), "longwatch-archives-"));
/**
 * One for all folders of a worker, because the start of its process takes a quarter of a second of processor time. Tests of a process
 * that ends have their own.
 */
export const sharedDuckdb = createDuckdb({
  folders: [root],
  spillInto: path.join(root, "spill"),
  memoryBytes: 256_000_000,
  residentBytes: 1_000_000_000,
});

/** Creates a folder in which `sharedDuckdb` may read and write. */
export const makeArchiveFolder = () => mkdtempSync(path.join(root, "archive-"));

/**
 * A folder for archive files, and a DuckDB that may read and write there. `open` opens the storage of the files. With `folder` it is
 * another reader of a folder that has files.
 */
export async function openFolder(
  open = createFolderStorage,
  folder = makeArchiveFolder(),
): Promise<ArchiveFolder> {
  const scratch = path.join(folder, "scratch");
  await mkdir(scratch, { recursive: true });
  const storage = open(folder);
  const damaged: ArchiveDamagedError[] = [];
  const onDamaged = (error: ArchiveDamagedError) => void damaged.push(error);
  const duckdb = sharedDuckdb;
  const files = createArchiveReader({ duckdb, storage, scratch, timeoutMs: 60_000, onDamaged });
  const close = () => rm(folder, { recursive: true, force: true });
  return { folder, storage, duckdb, files, damaged, close };
}

/** As `openFolder`, for the running test. */
export async function openTestFolder(open = createFolderStorage): Promise<ArchiveFolder> {
  const folder = await openFolder(open);
  atEnd(() => folder.close());
  return folder;
}

/**
 * Writes a zone's day (`yyyy-mm-dd`) into the archive, records included, and removes its events and records from Postgres
 * unless they are kept there.
 */
export async function archiveDay(
  database: Database,
  { storage, duckdb }: Pick<ArchiveFolder, "storage" | "duckdb">,
  day: string,
  { zoneId = 101, isKept = false } = {},
): Promise<void> {
  const write = () => writeDay({ database, duckdb, storage }, { zoneId, day });
  let { outcome } = await write();
  // Minutes that are not rolled up yet are marked. Rolled up, they agree.
  if (outcome === "counts-differ") {
    const rollUp = () => inTransaction(database, ({ tx }) => rollUpBatch(tx, { zoneId, limit: 5_000 }));
    while ((await rollUp()).counted > 0);
    ({ outcome } = await write());
  }
  if (outcome !== "written") throw new Error(`${day} was not archived: ${outcome}`);
  if (isKept) return;
  await inTransaction(database, async ({ client }) => {
    const span = [zoneId, `${day}T00:00:00Z`, new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS)];
    await client.query(
      "delete from waf_events where zone_id = $1 and occurred_at >= $2 and occurred_at < $3",
      span,
    );
    await client.query("delete from raw_blocks where zone_id = $1 and day = $2", [zoneId, day]);
  });
}
