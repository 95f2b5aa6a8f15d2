import type { FileHash } from "#lib/hash-file.ts";

/** A file of the archive as the manifest or a statement names it. */
export interface NamedFile {
  /** Relative to the archive, with `/`. */
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

/** Work in progress in the folder. Everything in it may be deleted when nothing writes. */
export const TEMPORARY_FOLDER = "tmp";
/** Folder in the temporary folder for what DuckDB cannot hold in memory. */
export const SPILL_FOLDER = "spill";

/**
 * Where the archive's files are kept: a folder, or a bucket with a folder as cache. Every call names a file by its path
 * in the archive. Files with a hash in their name never change; texts are replaced. Calls reject with a StorageError
 * while a bucket cannot be used.
 */
export interface ArchiveStorage {
  /** The folder or the bucket, for messages. */
  readonly place: string;
  /** Absolute. Files are read here, and work in progress is written here. */
  readonly folder: string;
  /** Whether files are kept in a bucket. */
  readonly isBucket: boolean;
  /** Takes over a complete local file. Once it returns, the file lasts. */
  put(local: string, path: string, hash: FileHash, signal?: AbortSignal): Promise<void>;
  /** Compares the kept file with its hash. Returns what is wrong with it, or null. */
  check(file: NamedFile, signal?: AbortSignal): Promise<string | null>;
  /** Makes the file readable in the folder, compared with its hash. Returns what is wrong with it, or null. */
  bring(file: NamedFile, signal?: AbortSignal): Promise<string | null>;
  /**
   * Notes that a file is in use, and returns a text that changes with the file in the folder: its size and its times. Null
   * if the file is not there.
   */
  touch(file: NamedFile): Promise<string | null>;
  /**
   * Keeps files in the folder until the returned function is called.
   * @throws {StorageError} if the folder may not have so many bytes.
   */
  hold(files: readonly NamedFile[]): () => void;
  /** Copies the kept file into a new local file. Returns what is wrong with it, or null. */
  copy(file: NamedFile, local: string, signal?: AbortSignal): Promise<string | null>;
  /** Returns a text, null if there is none. */
  readText(path: string): Promise<string | null>;
  writeText(path: string, text: string): Promise<void>;
  /** Returns whether the text was written: false if there is one already. */
  createText(path: string, text: string): Promise<boolean>;
  /** Lists what is in the folders of days. */
  list(): Promise<ListedFile[]>;
  /** Removes a file for good. A file that is not there is no error. */
  remove(path: string): Promise<void>;
  /** Removes from a bucket's cache the files that `listNamed` does not return: they were replaced or have expired. */
  forget(listNamed: (paths: readonly string[]) => Promise<ReadonlySet<string>>): Promise<void>;
}
