/** Writes whole numbers of 0 and more, seven bits to a byte, the least significant first. */
export interface VarintWriter {
  write(value: number): void;
  /** Bytes so far. */
  size(): number;
  /** A copy of what was written. */
  finish(): Buffer;
}

export function createVarintWriter(): VarintWriter {
  let bytes = Buffer.allocUnsafe(1_024);
  let end = 0;
  return {
    write(value) {
      if (end + 8 > bytes.length) bytes = Buffer.concat([bytes], bytes.length * 2);
      let rest = value;
      while (rest >= 0x80) {
        bytes[end++] = (rest % 0x80) | 0x80;
        rest = Math.floor(rest / 0x80);
      }
      bytes[end++] = rest;
    },
    size: () => end,
    finish: () => Buffer.from(bytes.subarray(0, end)),
  };
}

/**
 * Reads the numbers that lie in [from, to) of `bytes` into `into`, which has room for one per byte; answers how many
 * there are. Millions are read for one answer: hence no object and no call per number.
 */
export function readVarints(bytes: Buffer, from: number, to: number, into: Float64Array): number {
  let count = 0;
  for (let at = from; at < to; ) {
    let byte = bytes[at++] as number;
    let value = byte & 0x7f;
    for (let weight = 0x80; byte >= 0x80; weight *= 0x80) {
      byte = bytes[at++] as number;
      value += (byte & 0x7f) * weight;
    }
    into[count++] = value;
  }
  return count;
}

/** All numbers of `bytes`. */
export function unpackVarints(bytes: Buffer): Float64Array {
  const numbers = new Float64Array(bytes.length);
  return numbers.subarray(0, readVarints(bytes, 0, bytes.length, numbers));
}
