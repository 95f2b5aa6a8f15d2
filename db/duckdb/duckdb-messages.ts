/** The messages between Longwatch and the process of DuckDB, and the errors of that process. */
import { type Disposition, ServiceError } from "#lib/errors.ts";

/** The messages between the service and the process of DuckDB. */

/** A value of a statement's parameter, `$1` and so on. Whole numbers outside of 32 bits are bound as BIGINT. */
export type DuckdbParameter = string | number | bigint | boolean | null | readonly string[];

/**
 * A value of a result: BIGINT and wider are bigint, instants are Date, BLOB is Uint8Array, a list is an array. A VARCHAR
 * loses a leading U+FEFF on the way out of DuckDB: select `encode(text)` and decode it where that matters.
 */
export type DuckdbValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Date
  | Uint8Array
  | readonly DuckdbValue[]
  | { readonly [name: string]: DuckdbValue };

export interface DuckdbStatement {
  readonly sql: string;
  readonly values?: readonly DuckdbParameter[];
}

export interface DuckdbSettings {
  /** Absolute folders that statements may read and write. Everything else is refused. */
  readonly folders: readonly string[];
  /** Absolute folder for what does not fit into memory. */
  readonly spillFolder: string;
  /** DuckDB's own limit. Some aggregates exceed it, so `residentBytes` is the bound that holds. */
  readonly memoryBytes: number;
  readonly threads: number;
  /** Whether the process has the service's own priority instead of a lower one. */
  readonly isUrgent: boolean;
}

export type DuckdbRequest =
  | { readonly kind: "open"; readonly settings: DuckdbSettings }
  | {
      readonly kind: "run";
      readonly id: number;
      readonly statements: readonly DuckdbStatement[];
      readonly maxRows: number;
    }
  | { readonly kind: "interrupt"; readonly id: number };

export type DuckdbReply =
  | { readonly kind: "memory"; readonly residentBytes: number }
  | {
      readonly kind: "done";
      readonly id: number;
      readonly results: readonly (readonly DuckdbValue[])[][];
      readonly cpuMs: number;
    }
  | { readonly kind: "failed"; readonly id: number; readonly message: string; readonly cpuMs: number };

/**
 * `DUCKDB_DIED`: the process ended, also when it was killed because it grew or hung. `DUCKDB_MEMORY`: a statement needs
 * more memory than allowed. `DUCKDB_TIMEOUT`: its time was over. `DUCKDB_FILE`: a file is missing, damaged or cannot be
 * written. `DUCKDB_ROWS`: more rows than the caller takes. `DUCKDB_STATEMENT`: any other error of a statement.
 */
export type DuckdbErrorCode =
  | "DUCKDB_DIED"
  | "DUCKDB_MEMORY"
  | "DUCKDB_TIMEOUT"
  | "DUCKDB_FILE"
  | "DUCKDB_ROWS"
  | "DUCKDB_STATEMENT";

/** Thrown when statements in DuckDB's process fail. */
export class DuckdbError extends ServiceError {
  override readonly name = "DuckdbError";
  readonly code: DuckdbErrorCode;
  readonly disposition: Disposition;

  constructor(code: DuckdbErrorCode, message: string) {
    super(message);
    this.code = code;
    this.disposition = code === "DUCKDB_DIED" ? "retry" : "give-up";
  }
}

/** DuckDB's messages begin with the class of the error. */
const CODES: readonly (readonly [RegExp, DuckdbErrorCode])[] = [
  [/^Out of Memory Error/, "DUCKDB_MEMORY"],
  [/^(?:IO|Serialization) Error/, "DUCKDB_FILE"],
  [/^Invalid(?: Input)? Error: .*(?:parquet|magic bytes|thrift|protocol|decompress|zstd)/i, "DUCKDB_FILE"],
  [/^Too many rows/, "DUCKDB_ROWS"],
];

/** Returns the error for a message of DuckDB. The lines that follow the first one quote the statement. */
export function toDuckdbError(message: string): DuckdbError {
  const code = CODES.find(([pattern]) => pattern.test(message))?.[1] ?? "DUCKDB_STATEMENT";
  return new DuckdbError(code, message.split("\n", 1)[0] ?? "");
}
