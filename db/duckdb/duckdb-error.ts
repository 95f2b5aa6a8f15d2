import { type Disposition, ServiceError } from "#lib/errors.ts";

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
