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
