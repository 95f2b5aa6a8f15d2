/** Opens the search of events for one command. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createStorage } from "#app/open-archive-store.ts";
import type { SearchDeps } from "#archive/search/searching.ts";
import type { Config } from "#config/config.ts";
import { findReplacement } from "#db/archive/archive-files.ts";
import { createArchiveReader, createSearchDuckdb } from "#db/archive/archive-reader.ts";
import { ArchiveDamagedError } from "#db/archive/bring-file.ts";
import type { Database } from "#db/client.ts";
import { untilStopped, withStore } from "../store/open-store.ts";
import type { StoreIo } from "../store/store-command.ts";

/**
 * Runs `fn` with the events in Postgres, the files of archive days, and a signal for Ctrl-C. A damaged file is only
 * reported: the machine that runs the command may not have the archive's folder, and the service checks its own files.
 */
export function withSearch<T>(
  io: Pick<StoreIo, "interrupted">,
  config: Config,
  fn: (deps: SearchDeps, database: Database, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withStore(config, (database) =>
    withFiles(database, config, io, (deps, signal) => fn(deps, database, signal)),
  );
}

/** Does the same on a database that is open. */
export async function withFiles<T>(
  database: Database,
  config: Config,
  io: Pick<StoreIo, "interrupted">,
  fn: (deps: SearchDeps, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { folder } = config.archive;
  return untilStopped(io, async (signal) => {
    const scratch = await mkdtemp(path.join(tmpdir(), "longwatch-search-"));
    const duckdb = createSearchDuckdb(folder, scratch);
    try {
      const files = createArchiveReader({
        duckdb,
        storage: createStorage(config.archive, database.db),
        scratch,
        findReplacement: (file) => findReplacement(database.db, file),
      });
      return await fn({ queries: database, files }, signal);
    } catch (thrown) {
      throw thrown instanceof ArchiveDamagedError ? explain(thrown, config.archive) : thrown;
    } finally {
      await duckdb.close();
      await rm(scratch, { recursive: true, force: true });
    }
  });
}

function explain(error: ArchiveDamagedError, { folder, bucket }: Config["archive"]): Error {
  const hint =
    error.damage === "is missing" && bucket === null
      ? `The folder of the archive is ${folder}. Set LONGWATCH_ARCHIVE_DIR to the folder of the service, or run the command where the service runs`
      : "archive verify lists every damaged file";
  return new Error(`${error.message}. ${hint}`, { cause: error });
}
