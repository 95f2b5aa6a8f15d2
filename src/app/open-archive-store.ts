import path from "node:path";
import { createDuckdb } from "#db/duckdb/duckdb.ts";
import type { ArchiveStore } from "#jobs/archive/archive-days.ts";
import { temporaryFolder } from "#jobs/archive/work-folder.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import { type ArchiveStorage, SPILL_FOLDER } from "#model/archive-storage.ts";

/** DuckDB's own limit. It does not cover the buffers of compression and of the CSV file. */
const MEMORY_BYTES = 160_000_000;
const RESIDENT_BYTES = 400_000_000;

/** Returns the archive as its writers need it, with a DuckDB that starts on first use and can reach only the folder. */
export function createArchiveStore(storage: ArchiveStorage): ArchiveStore {
  const { folder } = storage;
  return {
    storage,
    duckdb: createDuckdb({
      folders: [folder],
      spillInto: path.join(temporaryFolder(folder), SPILL_FOLDER),
      memoryBytes: MEMORY_BYTES,
      residentBytes: RESIDENT_BYTES,
    }),
  };
}

export function openArchiveStore(storage: ArchiveStorage, stack: StopStack): ArchiveStore {
  const store = createArchiveStore(storage);
  stack.defer("archive writer", () => store.duckdb.close());
  return store;
}
