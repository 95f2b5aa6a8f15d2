const HASH_BYTES = 8;
const EMPTY = 0xffff_ffff;

/** Finds the row of an events file by the hash under which `raw_blocks` names the event's record. */
export interface RecordRows {
  readonly rows: number;
  /** Adds hashes of eight bytes each, in the order of the rows. */
  add(hashes: Buffer): void;
  /** Returns the row of a hash the first time, then `TAKEN`; `NO_EVENT` for a hash of no row. */
  take(hashes: Buffer, index: number): number;
}

export const NO_EVENT = -1;
const TAKEN = -2;

/** About thirty bytes per event, so that a day of millions fits into little memory. */
export function createRecordRows(capacity: number): RecordRows {
  const size = 2 ** Math.ceil(Math.log2(Math.max(2, 1.5 * capacity)));
  const slots = new Uint32Array(size).fill(EMPTY);
  const high = new Uint32Array(capacity);
  const low = new Uint32Array(capacity);
  const taken = new Uint8Array(capacity);
  let rows = 0;

  /** The slot of this hash, or the empty one in which it belongs. */
  function findSlot(one: number, two: number): number {
    let slot = two & (size - 1);
    for (;;) {
      const row = slots[slot] ?? EMPTY;
      if (row === EMPTY || (high[row] === one && low[row] === two)) return slot;
      slot = (slot + 1) & (size - 1);
    }
  }

  return {
    get rows() {
      return rows;
    },
    add(hashes) {
      for (let at = 0; at < hashes.length; at += HASH_BYTES) {
        if (rows === capacity) throw new RangeError(`more than ${capacity} rows`);
        const [one, two] = [hashes.readUInt32BE(at), hashes.readUInt32BE(at + 4)];
        high[rows] = one;
        low[rows] = two;
        const slot = findSlot(one, two);
        if (slots[slot] === EMPTY) slots[slot] = rows;
        rows++;
      }
    },
    take(hashes, index) {
      const at = index * HASH_BYTES;
      const row = slots[findSlot(hashes.readUInt32BE(at), hashes.readUInt32BE(at + 4))] ?? EMPTY;
      if (row === EMPTY) return NO_EVENT;
      if (taken[row] === 1) return TAKEN;
      taken[row] = 1;
      return row;
    },
  };
}
