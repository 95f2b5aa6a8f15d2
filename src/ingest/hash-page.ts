import { hash } from "node:crypto";

/** SHA-256 of the entries' part of a page: tokens around it change from pass to pass. */
export function hashPage(records: readonly Buffer[], body: Buffer): Buffer {
  const first = records[0];
  const last = records.at(-1);
  if (first === undefined || last === undefined) return hash("sha256", "", "buffer");
  // The records are views into one body, in order: hash them and what lies between them in one go.
  // Small buffers share memory with strangers: one buffer behind all three does not make the records views.
  const isView =
    first.buffer === body.buffer &&
    last.buffer === body.buffer &&
    first.byteOffset >= body.byteOffset &&
    last.byteOffset + last.length <= body.byteOffset + body.length;
  const whole = isView
    ? body.subarray(first.byteOffset - body.byteOffset, last.byteOffset - body.byteOffset + last.length)
    : Buffer.concat(records);
  return hash("sha256", whole, "buffer");
}
