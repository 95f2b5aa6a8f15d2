import { hash } from "node:crypto";
import type { z } from "zod";
import { type AcceptedTimes, readEntries } from "./read-entries.ts";
import { sliceEntries } from "./slice-entries.ts";
import type { WafEvent } from "./waf-event.ts";

export interface PageSource<Entry> {
  readonly route: "search" | "list";
  readonly schema: z.ZodType<Entry>;
  readonly toEvent: (entry: Entry) => WafEvent;
  /** The UTC day that was asked for, `yyyy-mm-dd`; null where a span was. */
  readonly day: string | null;
  readonly accepted: AcceptedTimes;
}

export interface PreparedPage {
  readonly events: readonly WafEvent[];
  /** The record of each event, byte for byte; as many as `events`. */
  readonly records: readonly Buffer[];
  readonly quarantined: readonly {
    readonly route: "search" | "list";
    readonly day: string | null;
    readonly reason: string;
    readonly raw: Buffer;
  }[];
  /** Null on a page without events. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
}

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

/** The entries of a page as bytes; written again where the answer's form does not allow to cut them out. */
export function entryBytes(body: Buffer, member: string, entries: readonly unknown[]): Buffer[] {
  const slices = sliceEntries(body, member);
  if (slices?.length === entries.length) return slices;
  return entries.map((entry) => Buffer.from(JSON.stringify(entry) ?? "null"));
}

/** What one page of the platform becomes. Entries that cannot become events are set aside with their bytes. */
export function preparePage<Entry>(
  entries: readonly unknown[],
  bytes: readonly Buffer[],
  source: PageSource<Entry>,
): PreparedPage {
  const { read, refused } = readEntries(entries, source.schema, source.toEvent, source.accepted);
  const bytesOf = (index: number) => bytes[index] ?? Buffer.alloc(0);
  let firstAt: number | null = null;
  let lastAt: number | null = null;
  for (const { event } of read) {
    if (firstAt === null || event.occurredAt < firstAt) firstAt = event.occurredAt;
    if (lastAt === null || event.occurredAt > lastAt) lastAt = event.occurredAt;
  }
  return {
    events: read.map(({ event }) => event),
    records: read.map(({ index }) => bytesOf(index)),
    quarantined: refused.map(({ index, reason }) => ({
      route: source.route,
      day: source.day,
      reason,
      raw: bytesOf(index),
    })),
    firstAt,
    lastAt,
  };
}
