/** Events and the keys by which they are known. */

import { hash } from "node:crypto";
import { SEARCH_COLUMNS } from "./fields.ts";
import { startOfDay, toDay } from "./horizon.ts";
import { DIMENSIONS, type Dimension, type EventRoute } from "./kinds.ts";
import type { FactColumns } from "./request-facts.ts";

/**
 * One WAF event as it is stored. In every nullable text, null means "this route cannot know" and '' means "known to be
 * empty". A merge fills only nulls. No text contains a NUL, which Postgres cannot store, and each is cut to a limit.
 * The record as received is stored elsewhere.
 */
export interface WafEvent extends FactColumns {
  /** Epoch milliseconds by the platform's clock. */
  readonly occurredAt: number;
  readonly logId: string;
  readonly route: EventRoute;
  readonly feature: string | null;
  readonly ruleId: string | null;
  /** May be masked (`203.0.113.*`). */
  readonly ip: string | null;
  readonly ja4: string | null;
  readonly ua: string | null;
  readonly url: string | null;
  readonly asn: string | null;
  readonly country: string | null;
  /** The search language's verb: `block`, `log`, `challenge`, ... An unknown word is stored unchanged. */
  readonly action: string | null;
  readonly message: string | null;
}

/** An event whose facts were not read. */
export type EventWithoutFacts = Omit<WafEvent, keyof FactColumns>;

/** An event with the values of its columns. An unknown value is ''. */
export interface ArchivedEvent {
  readonly logId: string;
  /** Epoch ms. */
  readonly occurredAt: number;
  /** Whether it was copied from the list or from a search. */
  readonly route: string;
  readonly fields: Readonly<Record<Dimension, string>>;
  readonly message: string;
  /** Facts of its request, for events without a record. */
  readonly method: string;
  readonly requestId: string;
}

/** The columns with the texts of an event, of Postgres and of the archive's files. */
export const EVENT_TEXTS = ["log_id", "route", ...Object.values(SEARCH_COLUMNS), "method", "request_id"];

/** Returns the event of a time with the values of `EVENT_TEXTS`, in their order. */
export function toArchivedEvent(
  occurredAt: number,
  [logId = "", route = "", ...texts]: readonly string[],
): ArchivedEvent {
  const fields = Object.fromEntries(DIMENSIONS.map((name, index) => [name, texts[index] ?? ""]));
  const [message = "", method = "", requestId = ""] = texts.slice(DIMENSIONS.length);
  return { logId, occurredAt, route, fields: fields as ArchivedEvent["fields"], message, method, requestId };
}

/** Identifies one event of a zone. */
export interface EventKey {
  /** Epoch ms. */
  readonly occurredAt: number;
  readonly logId: string;
}

/** Identifies one event of all zones. */
export interface ZoneEventKey extends EventKey {
  readonly zoneId: number;
}

/** Returns the earliest and the latest time of events, epoch ms; null if there is no event. */
export function spanOf(
  events: readonly Pick<EventKey, "occurredAt">[],
): { readonly firstAt: number; readonly lastAt: number } | null {
  if (events.length === 0) return null;
  let [firstAt, lastAt] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { occurredAt } of events) {
    firstAt = Math.min(firstAt, occurredAt);
    lastAt = Math.max(lastAt, occurredAt);
  }
  return { firstAt, lastAt };
}

/** Returns the UTC days of events, `yyyy-mm-dd`. */
export function daysOf(events: readonly Pick<EventKey, "occurredAt">[]): string[] {
  return [...new Set(events.map(({ occurredAt }) => startOfDay(occurredAt)))].map(toDay);
}

const LOG_ID_HASH_BYTES = 8;

/**
 * Returns eight bytes, as lower-case hex, that tell whether an event was seen before. The hash covers time (epoch ms)
 * and id, because a platform that uses an id twice must not lose a record.
 */
export function hashEventKey({ occurredAt, logId }: { occurredAt: number; logId: string }): string {
  return hash("sha256", `${occurredAt} ${logId}`, "hex").slice(0, 2 * LOG_ID_HASH_BYTES);
}

/** Returns the same for an event of one of several zones. */
export function hashZoneEventKey({ zoneId, ...event }: ZoneEventKey): string {
  return `${zoneId} ${hashEventKey(event)}`;
}

/** Returns the hashes of many ids one after another, in the format of raw_blocks. */
export function packLogIdHashes(hashes: readonly string[]): Buffer {
  return Buffer.from(hashes.join(""), "hex");
}

export function unpackLogIdHashes(packed: Buffer): string[] {
  const hex = packed.toString("hex");
  const width = 2 * LOG_ID_HASH_BYTES;
  return Array.from({ length: hex.length / width }, (_, index) =>
    hex.slice(index * width, (index + 1) * width),
  );
}

/** Returns the positions of these events in the packed hashes of a block. */
export function findPositions(
  packed: Buffer,
  events: readonly { occurredAt: number; logId: string }[],
): number[] {
  const wanted = new Set(events.map(hashEventKey));
  return unpackLogIdHashes(packed).flatMap((hash, position) => (wanted.has(hash) ? [position] : []));
}

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
