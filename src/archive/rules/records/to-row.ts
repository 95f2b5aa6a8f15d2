/** An event as a row of the search, of the native API and of the list. */
import { isObject } from "#lib/json.ts";
import { cleanText, MAX_TEXT_CHARS } from "#lib/text.ts";
import { FIELD_NAMES, FIELDS, type FieldName } from "#model/fields.ts";
import { findHeader, toUrlPart } from "#model/record-parts.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import { maskAddress, maskRecord } from "../mask.ts";
import { readMethod, readRecord } from "./find-records.ts";

/** Only such a text can differ from the platform's: NUL and broken surrogates were replaced, or its end was cut. */
const MADE_STORABLE = /\uFFFD|…$/;

/**
 * Returns a row of a flat search (platform API spec 2.4) as JSON. `log` is the unchanged text of the record as the
 * platform sent it; null if no record is stored, or if the text is not an object. Masked rows have no record.
 */
export function toSearchRow(event: ArchivedEvent, record: Buffer | undefined, isMasked: boolean): string {
  const { logId, occurredAt, fields } = event;
  const log = isMasked || record === undefined ? null : readLog(record);
  const shown = isMasked ? { ...fields, ip: maskAddress(fields.ip) } : restoreTexts(fields, log?.value);
  return `{"logId":${JSON.stringify(logId)},"timestamp":${occurredAt},"log":${log?.text ?? "null"},"fields":${JSON.stringify(shown)}}`;
}

function readLog(record: Buffer): { text: string; value: Record<string, unknown> } | null {
  const text = readRecord(record)?.log ?? null;
  if (text === null) return null;
  try {
    // The text goes into the answer unchanged, so it must be one JSON object and nothing else.
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { text, value } : null;
  } catch {
    return null;
  }
}

/**
 * Returns the dimensions in the platform's order. A text that was changed for storage is taken from the record
 * instead.
 */
export function restoreTexts(fields: ArchivedEvent["fields"], log: Record<string, unknown> | undefined) {
  const { feature, ruleId, ip, ja4, asn, country, action } = fields;
  const whole = (kept: string, recorded: unknown) =>
    typeof recorded === "string" && MADE_STORABLE.test(kept) && isKeptAs(recorded, kept) ? recorded : kept;
  const ua = whole(fields.ua, log === undefined ? undefined : findHeader(log["Headers"], "user-agent"));
  const url = whole(fields.url, log?.["Url"]);
  return { feature, ruleId, ip, ja4, ua, url, asn, country, action };
}

function isKeptAs(recorded: string, kept: string): boolean {
  return cleanText(recorded, MAX_TEXT_CHARS) === kept;
}

interface NativeRow {
  readonly logId: string;
  readonly timestamp: number;
  readonly log: Record<string, unknown> | null;
  readonly fields: Record<FieldName, string>;
}

/**
 * Returns a row: that of the platform's search, with Longwatch's names of the fields, and with host and path of the
 * URL and the method of the record.
 */
export function toNativeRow(
  event: ArchivedEvent & { readonly zoneId: number },
  record: Buffer | undefined,
  isMasked: boolean,
): NativeRow {
  const row = JSON.parse(toSearchRow(event, record, isMasked)) as NativeRow;
  const { url } = event.fields;
  const known: Record<string, string> = {
    ...row.fields,
    host: toUrlPart("host", url),
    path: toUrlPart("path", url),
    method: readMethod(record),
    zone: String(event.zoneId),
  };
  const fields = Object.fromEntries(FIELD_NAMES.map((name) => [name, known[FIELDS[name]] ?? ""]));
  return { ...row, fields } as NativeRow;
}

/** The list's label for each verb of the search language. */
const STATUSES = new Map([
  ["block", "Blocked"],
  ["log", "Logged"],
  ["challenge", "Challenged"],
  ["allow", "Allowed"],
  ["bypass", "Bypassed"],
]);

const IPV4 = /^\d+\.\d+\.\d+\.\d+$/;

/**
 * Returns an entry of the date-paged list (platform API spec 2.7) as JSON. With its record it equals the platform's
 * entry byte for byte. If the record is a row of a search, the entry has the row's `log` and the labels of its
 * dimensions. Without a record (the platform refused the list, or the record is past its retention) it is made of the
 * event's columns: a `log` with message, URL, masked address and User-Agent, and labels of which the others are
 * empty.
 */
export function toListEntry(event: ArchivedEvent, record: Buffer | undefined, isMasked: boolean): string {
  const read = record === undefined ? null : readRecord(record);
  if (record !== undefined && read !== null && !read.isRow && !isMasked) return record.toString();
  const made = makeEntry(event, isMasked);
  const log = read === null || read.log === null ? null : isMasked ? maskRecord(read.log) : read.log;
  return JSON.stringify({ ...made, log: log ?? made.log, labels: read?.labels ?? made.labels });
}

function makeEntry({ logId, occurredAt, fields, message }: ArchivedEvent, isMasked: boolean) {
  const { ip, ua, url, asn, country, ruleId, action } = fields;
  const Headers = ua === "" || isMasked ? [] : [{ Name: "User-Agent", Value: ua }];
  // The platform hides the last octet of an IPv4 address in its records and leaves IPv6 unchanged.
  const RemoteIp = isMasked || IPV4.test(ip) ? maskAddress(ip) : ip;
  const log = { ServerZoneId: null, Message: message, Url: url, RemoteIp, UrlEncodedBody: null, Headers };
  const status = STATUSES.get(action) ?? action;
  return {
    logId,
    timestamp: occurredAt,
    log: JSON.stringify({ ...log, TriggerMatch: null }),
    labels: { asn, country, ruleId, severity: "", method: "", ruleGroup: "", status, serverZone: "" },
  };
}
