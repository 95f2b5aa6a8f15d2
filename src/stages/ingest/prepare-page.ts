import type { EventRoute } from "#model/kinds.ts";
import type { WafEvent } from "#model/waf-event.ts";
import type { OpenedPage } from "./open-page.ts";
import { type AcceptedTimes, type EntryReader, readEntries } from "./read-entries.ts";

export interface PageSource<Entry> extends EntryReader<Entry> {
  readonly route: EventRoute;
  /** The UTC day of the request, `yyyy-mm-dd`; null for a span. */
  readonly day: string | null;
  readonly accepted: AcceptedTimes;
}

export interface QuarantinedEntry {
  readonly route: EventRoute;
  readonly day: string | null;
  readonly reason: string;
  readonly raw: Buffer;
}

export interface PreparedPage {
  readonly events: readonly WafEvent[];
  /** The record of each event, byte for byte, in the order of `events`. */
  readonly records: readonly Buffer[];
  readonly quarantined: readonly QuarantinedEntry[];
  /** Null on a page without events. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
}

/**
 * Converts one page of the platform to events and records. Entries that cannot become events are quarantined with
 * their bytes.
 */
export function preparePage<Entry>(
  page: Omit<OpenedPage, "envelope">,
  source: PageSource<Entry>,
): PreparedPage {
  const { read, refused } = readEntries(page, source, source.accepted);
  const recordOf = (index: number) => page.records[index] ?? Buffer.alloc(0);
  let firstAt: number | null = null;
  let lastAt: number | null = null;
  for (const { event } of read) {
    if (firstAt === null || event.occurredAt < firstAt) firstAt = event.occurredAt;
    if (lastAt === null || event.occurredAt > lastAt) lastAt = event.occurredAt;
  }
  return {
    events: read.map(({ event }) => event),
    records: read.map(({ index }) => recordOf(index)),
    quarantined: refused.map(({ index, reason }) => ({
      route: source.route,
      day: source.day,
      reason,
      raw: recordOf(index),
    })),
    firstAt,
    lastAt,
  };
}
