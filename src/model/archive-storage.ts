/** The folder or bucket that holds the archive, and its failures. */

import { type Disposition, ServiceError } from "#lib/errors.ts";
import type { FileHash } from "#lib/files.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";

/** A file of the archive as the manifest or a statement names it. */
export interface NamedFile {
  /** The path in the archive, with `/`. */
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** A file that a storage has. */
export interface ListedFile {
  readonly path: string;
  readonly bytes: number;
  /** Epoch ms. */
  readonly modifiedAt: number;
}

/** Folder for work in progress. Everything in it may be deleted while nothing writes. */
export const TEMPORARY_FOLDER = "tmp";
/** Folder below the temporary folder for data that DuckDB cannot hold in memory. */
export const SPILL_FOLDER = "spill";
/** Folder below the temporary folder for copies of hours that are in Postgres. */
export const KEPT_FOLDER = "kept";

/** A file in a cache that is younger may be one that is about to be entered into the manifest. */
export const YOUNG_FILE_MS = HOUR_MS;
/** How often each process of the service removes from its cache what the manifest no longer names. */
export const FORGET_EVERY_MS = 5 * MINUTE_MS;

/**
 * The storage of the archive's files: a folder, or a bucket with a folder as cache. Every call names a file by its path
 * in the archive. Files with a hash in their name never change; texts are replaced. Calls reject with a StorageError
 * while a bucket cannot be used.
 */
export interface ArchiveStorage {
  /** Names the folder or the bucket in messages. */
  readonly place: string;
  /** Absolute path. Files are read here, and work in progress is written here. */
  readonly folder: string;
  /** True if the files are kept in a bucket. */
  readonly isBucket: boolean;
  /** Stores a complete local file. Once this returns, the file is durable. */
  put(local: string, path: string, hash: FileHash, signal?: AbortSignal): Promise<void>;
  /** Compares the stored file with its hash. Returns what is wrong with it, or null. */
  check(file: NamedFile, signal?: AbortSignal): Promise<string | null>;
  /** Makes the file readable in the folder and compares it with its hash. Returns what is wrong with it, or null. */
  bring(file: NamedFile, signal?: AbortSignal): Promise<string | null>;
  /**
   * Records a use of the file. Returns a text that changes with the file in the folder: its size and its times. Returns
   * null if the file is not there.
   */
  touch(file: NamedFile): Promise<string | null>;
  /**
   * Keeps files in the folder until the returned function is called.
   * @throws {StorageError} if the folder has no space for so many bytes
   */
  hold(files: readonly NamedFile[]): () => void;
  /** Copies the stored file into a new local file. Returns what is wrong with it, or null. */
  copy(file: NamedFile, local: string, signal?: AbortSignal): Promise<string | null>;
  /** Returns a text; null if there is none. */
  readText(path: string): Promise<string | null>;
  writeText(path: string, text: string): Promise<void>;
  /** Returns true if the text was written, and false if there is one already. */
  createText(path: string, text: string): Promise<boolean>;
  /** Lists the files in the folders of days. */
  list(): Promise<ListedFile[]>;
  /** Removes a file for good. A file that is not there is no error. */
  remove(path: string): Promise<void>;
  /** Removes files from a bucket's cache if `listNamed` does not return them: they were replaced or have expired. */
  forget(listNamed: (paths: readonly string[]) => Promise<ReadonlySet<string>>): Promise<void>;
}

/** `ARCHIVE_UNREACHABLE`: the bucket is out of reach now. `ARCHIVE_TOO_LARGE`: the wanted files exceed the cache. */
type StorageErrorCode = "ARCHIVE_UNREACHABLE" | "ARCHIVE_TOO_LARGE";

/** Thrown when the archive's storage does not give or take a file. It says nothing about the file. */
export class StorageError extends ServiceError {
  override readonly name = "StorageError";
  readonly code: StorageErrorCode;
  readonly disposition: Disposition = "retry";
  /** The day of the wanted file, `yyyy-mm-dd`; null if it was not for a day. */
  readonly day: string | null;

  constructor(
    message: string,
    {
      code = "ARCHIVE_UNREACHABLE",
      day = null,
      cause,
    }: { code?: StorageErrorCode; day?: string | null; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.day = day;
  }
}
