import type { z } from "zod";
import { MAX_DIMENSION_CHARS } from "#lib/clean-text.ts";
import type { WafEvent } from "#model/waf-event.ts";
import type { OpenedPage } from "./open-page.ts";

/**
 * Events outside these times are quarantined, so that no partition is created for a day that cannot have been
 * requested.
 */
export interface AcceptedTimes {
  readonly from: number;
  readonly to: number;
  /** The UTC day of a list, with a margin. An entry of another time contradicts its list. */
  readonly list?: { readonly from: number; readonly to: number };
}

/** The reason for quarantining an entry of a list that belongs to another day. */
export const OUTSIDE_DAY = "timestamp: outside the day of its list";

/** Converts an entry of one route to an event. */
export interface EntryReader<Entry> {
  /** A fast conversion for an entry exactly as the contract defines it; null if the schema has to decide. */
  readonly toPlainEvent?: (entry: unknown) => WafEvent | null;
  readonly schema: z.ZodType<Entry>;
  readonly toEvent: (entry: Entry) => WafEvent;
}

interface ReadEntry {
  /** Position in the page. */
  readonly index: number;
  readonly event: WafEvent;
}

interface RefusedEntry {
  readonly index: number;
  readonly reason: string;
}

export interface ReadEntries {
  readonly read: readonly ReadEntry[];
  readonly refused: readonly RefusedEntry[];
}

/**
 * Reads a page entry by entry, so that an entry that cannot become an event affects no other and is returned with its
 * reason. An id is stored unchanged or not at all, because a changed id would name another event.
 */
export function readEntries<Entry>(
  page: Omit<OpenedPage, "envelope">,
  reader: EntryReader<Entry>,
  accepted: AcceptedTimes,
): ReadEntries {
  const read: ReadEntry[] = [];
  const refused: RefusedEntry[] = [];
  for (let index = 0; index < page.records.length; index++) {
    const event = reader.toPlainEvent?.(page.readPlainEntry(index)) ?? judge(page.readEntry(index), reader);
    if (typeof event === "string") {
      refused.push({ index, reason: event });
      continue;
    }
    const reason = whyRefused(event, accepted);
    if (reason === null) read.push({ index, event });
    else refused.push({ index, reason });
  }
  return { read, refused };
}

/** Returns the event, or the reason why there is none. */
function judge<Entry>(entry: unknown, { schema, toEvent }: EntryReader<Entry>): WafEvent | string {
  const parsed = schema.safeParse(entry);
  return parsed.success ? toEvent(parsed.data) : `unreadable: ${describe(parsed.error)}`;
}

function whyRefused({ logId, occurredAt }: WafEvent, accepted: AcceptedTimes): string | null {
  if (logId.length > MAX_DIMENSION_CHARS) return `logId: longer than ${MAX_DIMENSION_CHARS} characters`;
  if (logId.includes("\0") || !logId.isWellFormed()) return "logId: holds text that cannot be stored";
  if (occurredAt < accepted.from) return `timestamp: before ${new Date(accepted.from).toISOString()}`;
  if (occurredAt >= accepted.to) return `timestamp: not before ${new Date(accepted.to).toISOString()}`;
  const { list } = accepted;
  if (list !== undefined && (occurredAt < list.from || occurredAt >= list.to)) return OUTSIDE_DAY;
  return null;
}

/** Returns which members are wrong, never their values, which are the visitor's. */
function describe(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map((issue) => `${issue.path.join(".") || "entry"}: ${issue.code}`)
    .join("; ");
}
