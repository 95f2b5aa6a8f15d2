import { hash } from "node:crypto";

/** Returns the SHA-256 of the entries' part of a page, because the tokens around it change from pass to pass. */
export function hashPage(records: readonly Buffer[], body: Buffer): Buffer {
  const first = records[0];
  const last = records.at(-1);
  if (first === undefined || last === undefined) return hash("sha256", "", "buffer");
  // If the records are views into one body, in order, they are hashed together with the bytes between them. Small
  // buffers share memory with unrelated ones, so one buffer behind all of them does not prove that they are such
  // views.
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
