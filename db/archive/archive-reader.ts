/** Reads files of the archive with DuckDB. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import path from "node:path";
import { LRUCache } from "lru-cache";
import { untilAborted } from "#lib/waiting.ts";
import { type ArchiveStorage, StorageError } from "#model/archive-storage.ts";
import type { Span } from "#model/horizon.ts";
import { createDuckdb, type Duckdb, type RunOptions } from "../duckdb/duckdb.ts";
import { DuckdbError, type DuckdbStatement } from "../duckdb/duckdb-messages.ts";
import type { ArchivedDay, ArchiveFile } from "./archived-days.ts";
import { ArchiveDamagedError, bringFile, locateFile } from "./bring-file.ts";
import { KeptFileError, type KeptHours, openKeptHours } from "./kept-files.ts";

/** Files of a bucket that one search fetches at once. */
const MOST_FETCHES = 6;
/** Files whose hash was found to be right in this process. */
const MOST_CHECKED = 100_000;

/** The place of the service's admission queue in which a statement runs. */
export interface ReaderPlace {
  readonly kind: "quick" | "long";
  /** Notes a statement, and returns a function to be called with its CPU time when it no longer runs. */
  readonly begin: () => (cpuMs: number) => void;
}

interface ArchiveReaderOptions {
  readonly duckdb: Duckdb;
  /**
   * Processes for statements in places. Quick ones have processes of their own, so that nothing long can take their threads. One
   * statement that takes too much memory ends its process, so long ones do not share a process while another is idle.
   * Default: `duckdb`.
   */
  readonly inPlaces?: Readonly<Record<ReaderPlace["kind"], readonly Duckdb[]>>;
  readonly storage: ArchiveStorage;
  /** Absolute folder, which exists, for files that one search needs. DuckDB may read and write there. */
  readonly scratch: string;
  /** Time limit of the statements of one call. Default: none. */
  readonly timeoutMs?: number;
  /** Called for each file that is missing or damaged, at every search that needs it. */
  readonly onDamaged?: (error: ArchiveDamagedError) => unknown;
  /** Called when a file is whole that was damaged. */
  readonly onWhole?: (file: ArchiveFile) => unknown;
  /** Returns the file that has replaced a file since the manifest was read; null for a valid file. Default: null. */
  readonly findReplacement?: (file: ArchiveFile) => Promise<ArchiveFile | null>;
  /** Called with the first failure to keep hours that are in Postgres. */
  readonly onNotKept?: (error: unknown) => void;
}

export interface ArchiveReader {
  readonly pathOf: (file: ArchiveFile) => string;
  /** Returns an events file as statements name it. */
  readonly eventsFileOf: (file: ArchiveFile) => { readonly path: string; readonly format: number };
  /** Returns the events files of days, and which of them lie whole in the window. */
  readonly eventsFilesOf: (
    days: readonly ArchivedDay[],
    window: Span,
  ) => { readonly path: string; readonly format: number; readonly isInside: boolean }[];
  /**
   * Runs statements that read these files, and returns the first column of the last one's rows. Compares each file with
   * its hash before its first use.
   * @throws {ArchiveDamagedError} if a file is missing or damaged.
   * @throws {KeptFileError} if that may be a kept file. All kept files of the call are removed.
   * @throws {DuckdbError}
   */
  read(
    files: readonly ArchiveFile[],
    statements: readonly Statement[],
    signal?: AbortSignal,
  ): Promise<string[]>;
  /** Returns a name for a file that one search needs and removes. */
  scratchFile(): ScratchFile;
  /** Returns a reader whose statements run in this place. */
  inPlace(place: ReaderPlace): ArchiveReader;
  /** The files of hours that are in Postgres; null in a reader that uses none. */
  readonly kept: KeptHours | null;
  withoutKept(): ArchiveReader;
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

interface AskedRead {
  readonly files: readonly ArchiveFile[];
  readonly statements: readonly Statement[];
}

/** Reads the archive's files through DuckDB. */
export function createArchiveReader(options: ArchiveReaderOptions): ArchiveReader {
  const { duckdb, inPlaces, storage, scratch, timeoutMs } = options;
  /** Statements that run in each process. */
  const running = new Map<Duckdb, number>();
  /** The result of `touch` before a file was found to be right, by path and hash. */
  // A limit on sizes of 1, because with `max` lru-cache allocates room for all of them at once.
  const checked = new LRUCache<string, string>({ maxSize: MOST_CHECKED, sizeCalculation: () => 1 });
  const damaged = new Set<string>();
  const pathOf = (file: ArchiveFile) => file.kept ?? locateFile(storage, file);
  const eventsFileOf = (file: ArchiveFile) => ({ path: pathOf(file), format: file.format });

  const eventsFilesOf = (days: readonly ArchivedDay[], window: Span) =>
    days.map(({ events, from, to }) => ({
      ...eventsFileOf(events),
      isInside: from >= window.from && to <= window.to,
    }));

  const checking = new Map<string, Promise<void>>();
  const { onNotKept } = options;
  const keptHours = openKeptHours(storage.folder, onNotKept === undefined ? {} : { onFailure: onNotKept });

  const keyOf = ({ path: name, sha256 }: ArchiveFile) => `${name} ${sha256}`;

  /**
   * Compares a file with its hash unless it is as it was at the last comparison. Searches that need the same file wait for
   * one comparison.
   */
  async function check(file: ArchiveFile): Promise<void> {
    const stamp = await storage.touch(file);
    const key = keyOf(file);
    if (stamp !== null && checked.get(key) === stamp && file.isReported !== true) return;
    const known = checking.get(key);
    if (known !== undefined) return known;
    const check = compare(file, stamp).finally(() => checking.delete(key));
    checking.set(key, check);
    return check;
  }

  async function compare(file: ArchiveFile, stamp: string | null): Promise<void> {
    await bringFile(storage, file).catch(async (thrown: unknown) => {
      if (thrown instanceof ArchiveDamagedError && !(await options.findReplacement?.(file))) {
        damaged.add(file.path);
        options.onDamaged?.(thrown);
      }
      throw thrown;
    });
    // The stamp is from before the comparison, so that a change meanwhile is noticed.
    const known = stamp ?? (await storage.touch(file));
    if (known !== null) checked.set(keyOf(file), known);
    if (damaged.delete(file.path) || file.isReported === true) options.onWhole?.(file);
  }

  /** Files of a bucket are fetched several at a time. The fetching goes on without a caller that has gone. */
  async function checkAll(files: readonly ArchiveFile[], signal: AbortSignal | undefined): Promise<void> {
    const rest = files.values();
    let isOver = false;
    const checkRest = async () => {
      for (const file of rest) {
        if (isOver) return;
        await untilAborted(check(file), signal);
        signal?.throwIfAborted();
      }
    };
    const workers = Array.from({ length: storage.isBucket ? MOST_FETCHES : 1 }, checkRest);
    await Promise.all(workers).finally(() => {
      isOver = true;
    });
  }

  /** The time limit of a search is also that of fetching its files. */
  async function fetchAll(files: readonly ArchiveFile[], signal: AbortSignal | undefined): Promise<void> {
    const limit = timeoutMs === undefined || !storage.isBucket ? undefined : AbortSignal.timeout(timeoutMs);
    const signals = [signal, limit].filter((one) => one !== undefined);
    try {
      await checkAll(files, AbortSignal.any(signals));
    } catch (thrown) {
      if (limit === undefined || thrown !== limit.reason) throw thrown;
      const day = files.find((file) => !checked.has(keyOf(file)))?.day ?? null;
      throw new StorageError(
        `fetching the files took longer than ${timeoutMs} ms; the cache keeps what was fetched`,
        { day },
      );
    }
  }

  function pickProcess(place: ReaderPlace | null): Duckdb {
    const processes = place === null ? [] : (inPlaces?.[place.kind] ?? []);
    const byLoad = processes.toSorted((one, other) => (running.get(one) ?? 0) - (running.get(other) ?? 0));
    return byLoad[0] ?? duckdb;
  }

  async function run(
    statements: readonly DuckdbStatement[],
    runOptions: RunOptions,
    place: ReaderPlace | null,
  ): Promise<string[]> {
    const attempt = () => {
      const runner = pickProcess(place);
      const count = (change: number) => running.set(runner, (running.get(runner) ?? 0) + change);
      const end = place?.begin();
      count(1);
      const onEnd = (cpuMs: number) => [count(-1), end?.(cpuMs)];
      return runner.run(statements, { ...runOptions, onEnd });
    };
    // Nothing was sent yet, so a search that lost its process runs once more.
    const results = await attempt().catch((thrown: unknown) => {
      if (thrown instanceof DuckdbError && thrown.code === "DUCKDB_DIED") return attempt();
      throw thrown;
    });
    return (results.at(-1) ?? []).map(([text]) => (typeof text === "string" ? text : ""));
  }

  async function readInUse(
    { files, statements }: AskedRead,
    { signal, place }: { readonly signal: AbortSignal | undefined; readonly place: ReaderPlace | null },
  ): Promise<string[]> {
    const archived = files.filter(({ kept }) => kept === undefined);
    const kept = files.flatMap((file) => file.kept ?? []);
    const release = storage.hold(archived);
    const attempt = async () => {
      await fetchAll(archived, signal);
      return run(statements, { signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) }, place);
    };
    try {
      return await attempt();
    } catch (thrown) {
      if (!(thrown instanceof DuckdbError) || thrown.code !== "DUCKDB_FILE") throw thrown;
      // A file has changed since it was checked: its hash says which one. A cached file may only have been removed by
      // another process.
      for (const file of archived) checked.delete(keyOf(file));
      if (kept.length === 0) return await attempt();
      for (const file of kept) await rm(file, { force: true });
      throw new KeptFileError(thrown.message, { cause: thrown });
    } finally {
      release();
    }
  }

  /**
   * Returns the files that have replaced these, and the statements with their names; null if none was replaced. An erasure
   * deletes what it replaced while searches go on. The new file has the same rows in the same places.
   */
  async function renew({ files, statements }: AskedRead): Promise<AskedRead | null> {
    const names = new Map<string, string>();
    const renewed: ArchiveFile[] = [];
    for (const file of files) {
      const instead = (await options.findReplacement?.(file)) ?? null;
      renewed.push(instead ?? file);
      if (instead !== null) names.set(path.posix.basename(file.path), path.posix.basename(instead.path));
    }
    if (names.size === 0) return null;
    // The name of a file is a hash, and texts of a caller are values.
    const write = (sql: string) => [...names].reduce((text, [from, to]) => text.replaceAll(from, to), sql);
    return { files: renewed, statements: statements.map(({ sql, values }) => ({ sql: write(sql), values })) };
  }

  const openReader = (place: ReaderPlace | null, kept: KeptHours | null): ArchiveReader => ({
    pathOf,
    eventsFileOf,
    eventsFilesOf,
    kept,
    inPlace: (other) => openReader(other, kept),
    withoutKept: () => openReader(place, null),
    async read(files, statements, signal) {
      for (let asked = { files, statements }; ; ) {
        try {
          return await readInUse(asked, { signal, place });
        } catch (thrown) {
          const renewed = thrown instanceof ArchiveDamagedError ? await renew(asked) : null;
          if (renewed === null) throw thrown;
          asked = renewed;
        }
      }
    },
    scratchFile() {
      const file = path.join(scratch, randomUUID());
      return { path: file, remove: () => rm(file, { force: true }) };
    },
  });
  return openReader(null, keptHours);
}

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
