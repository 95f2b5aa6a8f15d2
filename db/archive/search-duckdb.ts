import { createDuckdb, type Duckdb } from "../duckdb/duckdb.ts";

/** DuckDB's own limit. What does not fit is written into the scratch folder. */
const MEMORY_BYTES = 256_000_000;
/** DuckDB exceeds its limit in some aggregates. Above this size its process is ended. */
const RESIDENT_BYTES = 700_000_000;

/** Returns a DuckDB for searches in an archive folder. Its process starts with the first search. */
export function createSearchDuckdb(folder: string, scratch: string, { isUrgent = false } = {}): Duckdb {
  return createDuckdb({
    isUrgent,
    folders: [folder, scratch],
    spillInto: scratch,
    memoryBytes: MEMORY_BYTES,
    residentBytes: RESIDENT_BYTES,
  });
}
