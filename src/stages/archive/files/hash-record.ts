import { createHash } from "node:crypto";

/**
 * Returns the first 60 bits of the MD5 of a record and its row. The sum over a file proves that every record is in its
 * row, byte for byte. `sumRecordsFile` computes the same in DuckDB.
 */
export function hashRecord(row: number, record: Buffer): bigint {
  return BigInt(`0x${createHash("md5").update(`${row}:`).update(record).digest("hex").slice(0, 15)}`);
}
