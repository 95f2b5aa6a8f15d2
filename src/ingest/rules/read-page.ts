/** Reads a page of entries of the list, or rows of the search: events, entries to quarantine and counts by hour. */

import { hash } from "node:crypto";
import type { z } from "zod";
import { isObject, parseJson, sliceEntries } from "#lib/json.ts";
import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/text.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { toPlainAddress } from "#model/ip-address.ts";
import type { EventRoute } from "#model/kinds.ts";
import { findHeader, readText } from "#model/record-parts.ts";
import { readParsedRequest, toFactColumns, UNKNOWN_FACTS } from "#model/request-facts.ts";
import type { EventKey, EventWithoutFacts, WafEvent } from "#model/waf-event.ts";
import { EventLog, EventLogEntry, EventRow, LABELS } from "#platform/contract/event-logs.ts";
import { readEventTime } from "#platform/contract/values.ts";
import { AGREE_LONG_MS, SETTLE_MS } from "#proof/rules/hour-proof.ts";
import { digestIds, joinIdDigests, NO_IDS } from "#proof/rules/id-digest.ts";

interface PageSource {
  readonly route: EventRoute;
  /** The UTC day of the request, `yyyy-mm-dd`; null for a span. */
  readonly day: string | null;
  /** Epoch ms. */
  readonly receivedAt: number;
  /** An older event is refused, epoch ms. Default: ten days before `receivedAt`. */
  readonly oldestAt?: number;
  /**
   * Key of the hashes of matched texts, with which the facts of requests are read. Null leaves them unknown, for a page
   * whose events are not stored.
   */
  readonly hashKey: string | null;
  /** Default: that of the route. */
  readonly reader?: EntryReader;
}

interface EntryReader {
  /** Returns null for an entry that the schema refuses. `log` is the entry's record, parsed. */
  readonly toEvent: (entry: unknown, log: unknown) => EventWithoutFacts | null;
  /** Names what is wrong with an entry. */
  readonly schema: z.ZodType;
}

interface QuarantinedEntry {
  readonly route: EventRoute;
  readonly day: string | null;
  readonly reason: string;
  readonly raw: Buffer;
}

/** Returns how an entry that the schema has checked becomes an event. */
export function readBy<Entry>(
  schema: z.ZodType<Entry>,
  toEvent: (entry: Entry) => EventWithoutFacts,
): EntryReader {
  const read = (entry: unknown) => {
    const { data } = schema.safeParse(entry);
    return data === undefined ? null : toEvent(data);
  };
  return { schema, toEvent: read };
}

const READERS: Readonly<Record<EventRoute, EntryReader>> = {
  list: { schema: EventLogEntry, toEvent: toListEvent },
  search: readBy(EventRow, toSearchEvent),
};

/** An event as the platform sent it, byte for byte. */
export interface EventRecord extends EventKey {
  readonly raw: Buffer;
}

export interface ReadPage {
  readonly events: readonly WafEvent[];
  /** The records of the events. */
  readonly records: readonly EventRecord[];
  readonly quarantined: readonly QuarantinedEntry[];
}

/** The reason for quarantining an entry of a list that belongs to another day. */
export const OUTSIDE_DAY = "timestamp: outside the day of its list";

/**
 * Converts the entries of a page to events. An entry that cannot become an event affects no other and is quarantined
 * with its bytes. Entries that were not read before are parsed one by one, because garbage that is never part of a whole
 * page costs the collector a tenth.
 */
export function readPage(
  raws: readonly Buffer[],
  source: PageSource,
  entries?: readonly unknown[],
): ReadPage {
  const events: WafEvent[] = [];
  const records: EventRecord[] = [];
  const quarantined: QuarantinedEntry[] = [];
  for (const [index, raw] of raws.entries()) {
    const entry = entries === undefined ? parseJson(raw.toString()) : entries[index];
    const log = readLog(entry);
    const event = readEntry(entry, log, source);
    if (typeof event === "string") {
      quarantined.push({ route: source.route, day: source.day, reason: event, raw });
      continue;
    }
    events.push(addFacts(event, { ...(entry as object), log }, source.hashKey));
    records.push({ occurredAt: event.occurredAt, logId: event.logId, raw });
  }
  return { events, records, quarantined };
}

/** Returns the record of an entry, of which the list sends the text. It is parsed once for the event and its facts. */
function readLog(entry: unknown): unknown {
  const log = isObject(entry) ? entry["log"] : undefined;
  return typeof log === "string" ? parseJson(log) : log;
}

function addFacts(event: EventWithoutFacts, entry: unknown, hashKey: string | null): WafEvent {
  if (hashKey === null) return { ...event, ...UNKNOWN_FACTS };
  const { url, ua, ruleId } = event;
  const of = { url: url ?? "", ua: ua ?? "", ruleId: ruleId ?? "" };
  return { ...event, ...toFactColumns(readParsedRequest(entry, of, hashKey)) };
}

/** Returns the event, or the reason why it cannot be stored. */
function readEntry(entry: unknown, log: unknown, source: PageSource): EventWithoutFacts | string {
  const { schema, toEvent } = source.reader ?? READERS[source.route];
  const event = toEvent(entry, log);
  if (event === null) return `unreadable: ${describe(schema.safeParse(entry).error)}`;
  return whyRefused(event, source) ?? event;
}

/**
 * Returns why the event cannot be stored, or null. An id is stored unchanged or not at all, because a changed id would
 * name another event. The platform shows three days and its clock may be off. A time far outside that is wrong, and its
 * day would get a partition of its own.
 */
function whyRefused(
  { logId, occurredAt }: EventWithoutFacts,
  {
    day,
    receivedAt,
    oldestAt = receivedAt - 10 * DAY_MS,
  }: Pick<PageSource, "day" | "receivedAt" | "oldestAt">,
): string | null {
  if (logId.length > MAX_DIMENSION_CHARS) return `logId: longer than ${MAX_DIMENSION_CHARS} characters`;
  if (logId.includes("\0") || !logId.isWellFormed()) return "logId: holds text that cannot be stored";
  const to = receivedAt + 2 * DAY_MS;
  if (occurredAt < oldestAt) return `timestamp: before ${new Date(oldestAt).toISOString()}`;
  if (occurredAt >= to) return `timestamp: not before ${new Date(to).toISOString()}`;
  if (day === null) return null;
  const dayStart = Date.parse(day);
  const isOutside = occurredAt < dayStart - SETTLE_MS || occurredAt >= dayStart + DAY_MS + SETTLE_MS;
  return isOutside ? OUTSIDE_DAY : null;
}

/** Returns which members are wrong, never their values, which are the visitor's. */
function describe(error: z.ZodError | undefined): string {
  const wrong = (error?.issues ?? [])
    .slice(0, 3)
    .map(({ path, code }) => `${path.join(".") || "entry"}: ${code}`);
  return wrong.join("; ");
}

/** The search language's verbs for `labels.status`. An unknown word stays as it came. */
const ACTIONS = new Map([
  ["blocked", "block"],
  ["logged", "log"],
  ["challenged", "challenge"],
  ["allowed", "allow"],
  ["bypassed", "bypass"],
]);

/**
 * Converts an entry of the date-paged list (platform API spec 2.7) to an event. Returns null for exactly the entries that
 * `EventLogEntry` refuses, without the schema, which takes ten times as long. The list has no feature and no JA4, often
 * leaves a label empty that the search fills, and masks IPv4 addresses. So a value that the list leaves empty is unknown,
 * not empty. `parsed` is the entry's record if it was parsed already.
 */
export function toListEvent(entry: unknown, parsed?: unknown): EventWithoutFacts | null {
  if (!isObject(entry)) return null;
  const { log } = entry;
  const [logId, occurredAt] = [toLogId(entry["logId"]), readEventTime(entry["timestamp"])];
  const labels = entry["labels"] ?? {};
  if (logId === null || occurredAt === null || !isObject(labels)) return null;
  for (const name of LABELS) if (readText(labels[name]) === null) return null;
  const read = parsed ?? (typeof log === "string" ? parseJson(log) : log);
  const record = isObject(read) ? read : {};
  const status = readText(labels["status"]) ?? "";
  return {
    occurredAt,
    logId,
    route: "list",
    feature: null,
    ruleId: known(labels["ruleId"]),
    ip: toPlain(known(record["RemoteIp"])),
    ja4: null,
    ua: known(findHeader(record["Headers"], "user-agent"), MAX_TEXT_CHARS),
    url: known(record["Url"], MAX_TEXT_CHARS),
    asn: known(labels["asn"]),
    country: known(labels["country"]),
    action: known(ACTIONS.get(status.toLowerCase()) ?? status),
    message: known(record["Message"], MAX_TEXT_CHARS),
  };
}

function toLogId(value: unknown): string | null {
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : null;
  return typeof value === "string" && value !== "" ? value : null;
}

function known(value: unknown, maxChars = MAX_DIMENSION_CHARS): string | null {
  const text = readText(value);
  return text === null || text === "" ? null : cleanText(text, maxChars);
}

function toPlain(ip: string | null): string | null {
  return ip === null ? null : toPlainAddress(ip);
}

/**
 * Converts a row of a flat search (platform API spec 2.4) to an event. The search resolves every dimension, so a
 * field without a value is known to be empty. Only the message comes from the record, and is unknown without one.
 */
export function toSearchEvent(row: EventRow): EventWithoutFacts {
  const { fields } = row;
  const dimension = (name: string) => cleanText(fields[name] ?? "", MAX_DIMENSION_CHARS);
  // An object by contract. Text, as in the list, has the same content.
  const log = EventLog.safeParse(typeof row.log === "string" ? parseJson(row.log) : row.log);
  return {
    occurredAt: row.timestamp,
    logId: row.logId,
    route: "search",
    feature: dimension("feature"),
    ruleId: dimension("ruleId"),
    ip: toPlainAddress(dimension("ip")),
    ja4: dimension("ja4"),
    ua: cleanText(fields["ua"] ?? "", MAX_TEXT_CHARS),
    url: cleanText(fields["url"] ?? "", MAX_TEXT_CHARS),
    asn: dimension("asn"),
    country: dimension("country"),
    action: dimension("action"),
    message: log.success ? cleanText(log.data.Message, MAX_TEXT_CHARS) : null,
  };
}

/** Returns the entries of a page byte for byte. Serialises them again if they cannot be cut out of the answer. */
export function cutEntries(body: Buffer, member: string, entries: readonly unknown[]): readonly Buffer[] {
  const slices = sliceEntries(body, member)?.items;
  if (slices?.length === entries.length) return slices;
  return entries.map((entry) => Buffer.from(JSON.stringify(entry) ?? "null"));
}

const COMMA = Buffer.from(",");

/** Returns the SHA-256 of the entries of a page without the tokens around them, which change from pass to pass. */
export function hashEntries(raws: readonly Buffer[]): Buffer {
  const separated = raws.flatMap((raw, index) => (index === 0 ? [raw] : [COMMA, raw]));
  return hash("sha256", Buffer.concat(separated), "buffer");
}

/** Events of one hour (epoch ms of its start) and the digest of their log ids. */
export type ShownHour = readonly [startsAt: number, count: number, ids: string];

/** A pass remembers the ids of so many entries, which take about 15 MB, to notice those that a later page repeats. */
const MAX_REMEMBERED = 200_000;

/**
 * Returns what a page of the list adds to its pass, hour by hour, and adds its ids to `shown`. An entry that an earlier
 * page also showed is not counted again, because events that arrive during a pass move entries to the next page.
 */
export function sumPageHours(events: readonly EventKey[], shown: Set<string>): ShownHour[] {
  const ids = new Map<number, string[]>();
  for (const { occurredAt, logId } of events) {
    if (shown.has(logId)) continue;
    shown.add(logId);
    const hour = occurredAt - (occurredAt % HOUR_MS);
    const known = ids.get(hour);
    if (known === undefined) ids.set(hour, [logId]);
    else known.push(logId);
  }
  for (const oldest of shown) {
    if (shown.size <= MAX_REMEMBERED) break;
    shown.delete(oldest);
  }
  return [...ids].map(([hour, added]): ShownHour => [hour, added.length, digestIds(added)]);
}

/** Joins the hours of many pages of one pass. */
export function joinPageHours(
  pages: Iterable<readonly ShownHour[]>,
): Map<number, { count: number; ids: string }> {
  const joined = new Map<number, { count: number; ids: string }>();
  for (const hours of pages) {
    for (const [startsAt, count, ids] of hours) {
      const sum = joined.get(startsAt) ?? { count: 0, ids: NO_IDS };
      joined.set(startsAt, { count: sum.count + count, ids: joinIdDigests(sum.ids, ids) });
    }
  }
  return joined;
}

/** Ends the reason of a row of a file that was imported. */
export const atLine = (line: number) => `; imported, line ${line}`;
const AT_LINE = /; imported, line \d+$/;

/** Returns a new reason for an entry in the quarantine, with the line of a row that was imported. */
export function renewReason(before: string, reason: string): string {
  return `${reason}${AT_LINE.exec(before)?.[0] ?? ""}`;
}

/** The reason for quarantining an entry of an answer that shows none of the zone's known events. */
export const HELD_BACK = "held back: the answer shows none of the zone's known events";

/** An answer that was held back this long ago and that the platform still shows is stored. */
export const BELIEVE_AFTER_MS = AGREE_LONG_MS;
/** Entries are dropped after this time. By then the platform has shown them again, and they were stored, or it has not. */
export const DROP_AFTER_MS = 2 * AGREE_LONG_MS;

/** Returns raw entries as they are quarantined when their answer is held back. */
export function toHeldBack(
  raws: readonly Buffer[],
  { route, day, receivedAt }: { route: EventRoute; day: string | null; receivedAt: number },
): (QuarantinedEntry & { readonly receivedAt: number })[] {
  return raws.map((raw) => ({ route, day, reason: HELD_BACK, raw, receivedAt }));
}

/** One stored page, for metrics and progress. */
export interface StoredPageFacts {
  readonly route: EventRoute;
  readonly zoneId: number;
  readonly entries: number;
  readonly inserted: number;
  readonly filled: number;
  readonly quarantined: number;
  readonly bytes: number;
  /** Duration of the transaction that stored the page. */
  readonly commitMs: number;
}

export interface IngestObserver {
  pageStored(facts: StoredPageFacts): void;
}
