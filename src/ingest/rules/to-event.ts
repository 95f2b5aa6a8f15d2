/** Turns an entry of the list or a row of the search into an event. */

import { isObject, parseJson } from "#lib/json.ts";
import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/text.ts";
import { toPlainAddress } from "#model/ip-address.ts";
import { findHeader, readText } from "#model/record-parts.ts";
import type { EventWithoutFacts } from "#model/waf-event.ts";
import { EventLog, type EventRow, LABELS } from "#platform/contract/event-logs.ts";
import { readEventTime } from "#platform/contract/values.ts";

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
