import { hash } from "node:crypto";
import type { EventKey } from "./event-key.ts";
import { hashEventKey } from "./log-id-hash.ts";

/** Eight bytes for the event, four for its values. */
export const RECEIPT_BYTES = 12;
const KEY_CHARS = 16;

/**
 * Returns the receipt of an event with its present values, as lower-case hex. Two events of one page have the same eight
 * bytes once in 10^12 pages, and two values of one event the same four once in 4 * 10^9 revisions.
 */
export function toReceipt(event: EventKey, values: readonly string[]): string {
  const content = hash("sha256", JSON.stringify(values), "hex").slice(0, 2 * RECEIPT_BYTES - KEY_CHARS);
  return `${hashEventKey(event)}${content}`;
}

/** Returns the part of a receipt that stays the same when the event's values change. */
export function keyOfReceipt(receipt: string): string {
  return receipt.slice(0, KEY_CHARS);
}

export function packReceipts(receipts: readonly string[]): Buffer {
  return Buffer.from(receipts.join(""), "hex");
}

export function unpackReceipts(packed: Buffer): string[] {
  const hex = packed.toString("hex");
  const width = 2 * RECEIPT_BYTES;
  return Array.from({ length: hex.length / width }, (_, index) =>
    hex.slice(index * width, (index + 1) * width),
  );
}
