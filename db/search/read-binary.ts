import type pg from "pg";
import { to as copyTo } from "pg-copy-streams";

/** Signature, flags and the length of an extension that is not there. */
const HEADER_BYTES = 19;
const NULL = -1;
/** What stands for the number of fields behind the last row. */
const END = -1;

/**
 * The rows of a SELECT, each field as the bytes that Postgres sends it in, null for null. For columns of many bytes: as
 * text they would be twice as many and be read twice. It goes through COPY, which takes no parameters: only numbers may
 * have been written into the statement.
 */
export async function readBinary(client: pg.PoolClient, select: string): Promise<(Buffer | null)[][]> {
  const chunks: Buffer[] = [];
  for await (const chunk of client.query(copyTo(`copy (${select}) to stdout (format binary)`)))
    chunks.push(chunk as Buffer);
  return toRows(Buffer.concat(chunks));
}

function toRows(copied: Buffer): (Buffer | null)[][] {
  const rows: (Buffer | null)[][] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const fields = copied.readInt16BE(at);
    at += 2;
    if (fields === END) return rows;
    const row: (Buffer | null)[] = [];
    for (let field = 0; field < fields; field++) {
      const length = copied.readInt32BE(at);
      at += 4;
      row.push(length === NULL ? null : copied.subarray(at, at + length));
      if (length !== NULL) at += length;
    }
    rows.push(row);
  }
}
