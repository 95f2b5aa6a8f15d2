/** An event as a row of the search, of the native API and of the list. */
import { createIsoFormat, isTimeZone } from "#lib/format.ts";
import { isObject, parseJson } from "#lib/json.ts";
import { cleanText, MAX_TEXT_CHARS } from "#lib/text.ts";
import { COLUMN_NAMES, FIELD_NAMES, FIELDS, type FieldName, toFieldName } from "#model/fields.ts";
import { findHeader, readMatch, readText, toUrlPart } from "#model/record-parts.ts";
import { toParameter } from "#model/request-facts.ts";
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

export interface ZonedEvent extends ArchivedEvent {
  readonly zoneId: number;
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
export function toNativeRow(event: ZonedEvent, record: Buffer | undefined, isMasked: boolean): NativeRow {
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

/** The platform's name of the request, by which its support finds it. */
export const REQUEST_ID = "cdn-requestid";

/** A choice of columns as it was written. `timeZone` is that of the column `time`; UTC without one. */
export interface WrittenColumns {
  readonly columns?: readonly string[] | undefined;
  readonly timeZone?: string | undefined;
}
/** A choice in which `refuseColumns` found nothing wrong. */
export type ColumnChoice = WrittenColumns & { readonly columns: readonly string[] };

export type ColumnRow = Record<string, string | number>;

const IN_RECORDS: readonly string[] = ["status", "matched"];

/**
 * Returns the broken rules of a choice of columns. `rule` is what the value must be. `beside` is an option of the request
 * that has columns of its own. An export reads no records, so it has none of their columns.
 */
export function refuseColumns(
  { columns, timeZone }: WrittenColumns,
  { isExport, beside }: { readonly isExport: boolean; readonly beside: string | null },
): { readonly field: "columns" | "timeZone"; readonly value: string; readonly rule: string }[] {
  const refused: ReturnType<typeof refuseColumns> = [];
  const refuse = (field: "columns" | "timeZone", value: string, rule: string) =>
    refused.push({ field, value, rule });
  const names = COLUMN_NAMES.filter((name) => !isExport || !IN_RECORDS.includes(name));
  for (const [index, name] of (columns ?? []).entries())
    if (isExport && IN_RECORDS.includes(name))
      refuse("columns", name, "left out of an export: only a search reads the records of events");
    else if (!names.some((one) => one === name)) refuse("columns", name, `one of ${names.join(", ")}`);
    else if (columns?.indexOf(name) !== index) refuse("columns", name, "given once");
  if (columns !== undefined && beside !== null)
    refuse("columns", columns.join(","), `left out beside ${beside}, which has columns of its own`);
  if (timeZone !== undefined && !isTimeZone(timeZone))
    refuse("timeZone", timeZone, "a time zone such as Europe/Amsterdam or UTC");
  else if (timeZone !== undefined && columns?.includes("time") !== true)
    refuse("timeZone", timeZone, "given with the column time");
  return refused;
}

/**
 * Returns a function that returns the chosen columns of an event by their names. `zone` and `timestamp` are numbers. What is
 * not known is ''. A masked row has no whole address, and nothing that the platform shows in records only.
 */
export function createColumns({ columns, timeZone }: ColumnChoice, isMasked: boolean) {
  const formatTime = createIsoFormat(timeZone);
  return (event: ZonedEvent, record?: Buffer): ColumnRow => {
    const read = isMasked || record === undefined ? null : readRecord(record);
    // An export has no record, and to parse an empty text would take longer than everything else.
    const parsed = parseJson(read?.log ?? "{}");
    const log = isObject(parsed) ? parsed : {};
    const fields = restoreTexts(event.fields, log);
    const { url } = fields;
    const own: Readonly<Record<string, string | number>> = {
      ...fields,
      ip: isMasked ? maskAddress(fields.ip) : fields.ip,
      host: toUrlPart("host", url),
      path: toUrlPart("path", url),
      method: isMasked ? "" : readText(read?.labels?.["method"]) || event.method,
      zone: event.zoneId,
      timestamp: event.occurredAt,
      logId: event.logId,
      message: event.message,
      query: /^[^?#]*\?([^#]*)/s.exec(url)?.[1] ?? "",
      request_id: isMasked ? "" : event.requestId || (findHeader(log["Headers"], REQUEST_ID) ?? ""),
      status: readText(read?.labels?.["status"]) ?? "",
      matched: toParameter(readMatch(log["TriggerMatch"])?.name) ?? "",
    };
    return Object.fromEntries(
      columns.map((column) => {
        if (column === "time") return [column, formatTime(event.occurredAt)];
        const field = toFieldName(column);
        return [column, own[field === null ? column : FIELDS[field]] ?? ""];
      }),
    );
  };
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
