import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import path from "node:path";
import { LRUCache } from "lru-cache";
import { hashFile } from "../../src/lib/hash-file.ts";
import type { Duckdb, RunOptions } from "../duckdb/duckdb.ts";
import { DuckdbError } from "../duckdb/duckdb-error.ts";
import type { DuckdbStatement } from "../duckdb/duckdb-messages.ts";
import { ArchiveDamagedError } from "./archive-damaged-error.ts";
import type { ArchiveFile } from "./archived-days.ts";

/** Files whose hash was found to be right in this process. */
const MOST_CHECKED = 100_000;

export interface ArchiveReaderOptions {
  readonly duckdb: Duckdb;
  /** Absolute; the manifest's paths are relative to it. */
  readonly folder: string;
  /** Absolute folder, which exists, for files that one search needs. DuckDB may read and write there. */
  readonly scratch: string;
  /** Time limit of the statements of one call. Default: none. */
  readonly timeoutMs?: number;
  /** Called for each file that is missing or damaged, at every search that needs it. */
  readonly onDamaged?: (error: ArchiveDamagedError) => unknown;
  /** Called when a file is whole that was damaged. */
  readonly onWhole?: (file: ArchiveFile) => unknown;
}

export interface ArchiveReader {
  readonly pathOf: (file: ArchiveFile) => string;
  /**
   * Runs statements that read these files, and returns the first column of the last one's rows. Compares each file with
   * its hash before its first use.
   * @throws {ArchiveDamagedError} if a file is missing or damaged.
   * @throws {DuckdbError}
   */
  read(
    files: readonly ArchiveFile[],
    statements: readonly Statement[],
    signal?: AbortSignal,
  ): Promise<string[]>;
  /** Returns a name for a file that one search needs and removes. */
  scratchFile(): ScratchFile;
}

/** A file that DuckDB may read and write. It does not exist yet. */
export interface ScratchFile {
  readonly path: string;
  readonly remove: () => Promise<void>;
}

interface Statement {
  readonly sql: string;
  readonly values: readonly string[];
}

/** Reads the archive's files through DuckDB. */
export function createArchiveReader(options: ArchiveReaderOptions): ArchiveReader {
  const { duckdb, folder, scratch, timeoutMs } = options;
  /** Hash by path: a file of the same name with other content is another file. */
  const checked = new LRUCache<string, string>({ max: MOST_CHECKED });
  const damaged = new Set<string>();
  const pathOf = (file: ArchiveFile) => path.join(folder, ...file.path.split("/"));

  const checking = new Map<string, Promise<void>>();

  /** Searches that need the same file wait for one check of it. */
  function check(file: ArchiveFile): Promise<void> | undefined {
    if (checked.get(file.path) === file.sha256) return undefined;
    const key = `${file.path} ${file.sha256}`;
    const known = checking.get(key);
    if (known !== undefined) return known;
    const check = compare(file).finally(() => checking.delete(key));
    checking.set(key, check);
    return check;
  }

  async function compare(file: ArchiveFile): Promise<void> {
    const fail = (problem: string) => {
      const error = new ArchiveDamagedError(file, problem);
      damaged.add(file.path);
      options.onDamaged?.(error);
      return error;
    };
    const { sha256 } = await hashFile(pathOf(file)).catch((thrown: NodeJS.ErrnoException) => {
      throw fail(thrown.code === "ENOENT" ? "is missing" : "cannot be read");
    });
    if (sha256 !== file.sha256) throw fail("does not have the content that was archived");
    checked.set(file.path, file.sha256);
    if (damaged.delete(file.path)) options.onWhole?.(file);
  }

  async function run(statements: readonly DuckdbStatement[], runOptions: RunOptions): Promise<string[]> {
    const attempt = () => duckdb.run(statements, runOptions);
    // Nothing was sent yet, so a search that lost its process runs once more.
    const results = await attempt().catch((thrown: unknown) => {
      if (thrown instanceof DuckdbError && thrown.code === "DUCKDB_DIED") return attempt();
      throw thrown;
    });
    return (results.at(-1) ?? []).map(([text]) => (typeof text === "string" ? text : ""));
  }

  return {
    pathOf,
    async read(files, statements, signal) {
      for (const file of files) {
        await check(file);
        signal?.throwIfAborted();
      }
      try {
        return await run(statements, { signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
      } catch (thrown) {
        if (!(thrown instanceof DuckdbError) || thrown.code !== "DUCKDB_FILE") throw thrown;
        // A file has changed since it was checked: which one, its hash says.
        for (const file of files) {
          checked.delete(file.path);
          await check(file);
        }
        throw thrown;
      }
    },
    scratchFile() {
      const file = path.join(scratch, randomUUID());
      return { path: file, remove: () => rm(file, { force: true }) };
    },
  };
}
