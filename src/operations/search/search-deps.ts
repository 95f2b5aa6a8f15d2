import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import type { Database } from "#db/client.ts";

/** The sources of an answer: the events in Postgres and the files of archive days. */
export interface SearchDeps {
  readonly queries: Database;
  readonly files: ArchiveReader;
}
