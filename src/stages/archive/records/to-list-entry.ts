import type { ArchivedEvent } from "#model/waf-event.ts";
import { maskAddress, maskRecord } from "../mask/mask.ts";
import { readRecord } from "./read-record.ts";

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
