/** The rows of records in a file. */
import { createHash } from "node:crypto";

const HASH_BYTES = 8;
const EMPTY = 0xffff_ffff;

/** Finds the row of an events file by the hash under which `raw_blocks` names the event's record. */
interface RecordRows {
  readonly rows: number;
  /** Adds hashes of eight bytes each, in the order of the rows. */
  add(hashes: Buffer): void;
  /**
   * Adds second hashes of events, after all rows: pairs of the other hash and the event's own, of eight bytes each. If
   * the event is in no row, its record belongs to another day.
   */
  addOthers(pairs: Buffer): void;
  /** Returns the row of a hash the first time, then `TAKEN`; `NO_EVENT` for a hash of no row. */
  take(hashes: Buffer, index: number): number;
}

export const NO_EVENT = -1;
const TAKEN = -2;
const ELSEWHERE = 0xffff_fffe;

/** About thirty bytes per hash, so that a day of millions fits into little memory. */
export function createRecordRows(capacity: number): RecordRows {
  const size = 2 ** Math.ceil(Math.log2(Math.max(2, 1.5 * capacity)));
  const slots = new Uint32Array(size).fill(EMPTY);
  const high = new Uint32Array(capacity);
  const low = new Uint32Array(capacity);
  const rowOf = new Uint32Array(capacity);
  const taken = new Uint8Array(capacity);
  let [rows, entries] = [0, 0];

  /** The slot of this hash, or the empty one in which it belongs. */
  function findSlot(one: number, two: number): number {
    let slot = two & (size - 1);
    for (;;) {
      const entry = slots[slot] ?? EMPTY;
      if (entry === EMPTY || (high[entry] === one && low[entry] === two)) return slot;
      slot = (slot + 1) & (size - 1);
    }
  }

  function findRow(hashes: Buffer, at: number): number {
    const entry = slots[findSlot(hashes.readUInt32BE(at), hashes.readUInt32BE(at + 4))] ?? EMPTY;
    return entry === EMPTY ? EMPTY : (rowOf[entry] ?? EMPTY);
  }

  function enter(hashes: Buffer, at: number, row: number): void {
    if (entries === capacity) throw new RangeError(`more than ${capacity} hashes`);
    const [one, two] = [hashes.readUInt32BE(at), hashes.readUInt32BE(at + 4)];
    const slot = findSlot(one, two);
    high[entries] = one;
    low[entries] = two;
    rowOf[entries] = row;
    if (slots[slot] === EMPTY) slots[slot] = entries;
    entries++;
  }

  return {
    get rows() {
      return rows;
    },
    add(hashes) {
      for (let at = 0; at < hashes.length; at += HASH_BYTES) enter(hashes, at, rows++);
    },
    addOthers(pairs) {
      for (let at = 0; at < pairs.length; at += 2 * HASH_BYTES) {
        const row = findRow(pairs, at + HASH_BYTES);
        enter(pairs, at, row === EMPTY ? ELSEWHERE : row);
      }
    },
    take(hashes, index) {
      const row = findRow(hashes, index * HASH_BYTES);
      if (row === EMPTY) return NO_EVENT;
      if (row === ELSEWHERE || taken[row] === 1) return TAKEN;
      taken[row] = 1;
      return row;
    },
  };
}

/**
 * Returns the first 60 bits of the MD5 of a record and its row. The sum over a file proves that every record is in its
 * row, byte for byte. `sumRecordsFile` computes the same in DuckDB.
 */
export function hashRecord(row: number, record: Buffer): bigint {
  return BigInt(`0x${createHash("md5").update(`${row}:`).update(record).digest("hex").slice(0, 15)}`);
}
