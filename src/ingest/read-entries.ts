import type { z } from "zod";
import { MAX_DIMENSION_CHARS } from "../lib/clean-text.ts";
import type { WafEvent } from "../model/waf-event.ts";
import type { OpenedPage } from "./open-page.ts";

/** Events of another time than this are set aside: no partition is made for a day nobody can have asked for. */
export interface AcceptedTimes {
  readonly from: number;
  readonly to: number;
  /** Of a list: its UTC day and what is near it. An entry of another time contradicts the list that shows it. */
  readonly list?: { readonly from: number; readonly to: number };
}

/** Why an entry of a list is set aside that belongs to another day. */
export const OUTSIDE_DAY = "timestamp: outside the day of its list";

/** How an entry of one route becomes an event. */
export interface EntryReader<Entry> {
  /** Quick, for an entry exactly as the contract says; null where the schema is to judge. */
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
 * Reads a page entry by entry: one that cannot become an event costs only itself and is named with its reason. An id
 * is stored as it is or not at all, since a changed one would name another event.
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

/** The event, or why there is none. */
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

/** Which members are wrong, never their values: those are the visitor's. */
function describe(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map((issue) => `${issue.path.join(".") || "entry"}: ${issue.code}`)
    .join("; ");
}
