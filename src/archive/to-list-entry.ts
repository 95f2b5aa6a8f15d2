import { isObject } from "../is-object.ts";
import type { ArchivedEvent } from "./archived-event.ts";
import { maskAddress, maskRecord } from "./mask.ts";

/** The search language's verb as the list's label says it. */
const STATUSES = new Map([
  ["block", "Blocked"],
  ["log", "Logged"],
  ["challenge", "Challenged"],
  ["allow", "Allowed"],
  ["bypass", "Bypassed"],
]);

/**
 * An entry of the date-paged list (platform API spec 2.7) as JSON. With its record it is what the platform sent, byte for
 * byte; without one (the platform refused the list, or the record is past its retention) it is made of what the
 * search told: a `log` with message, URL, masked address and User-Agent, and labels of which the others are empty.
 */
export function toListEntry(event: ArchivedEvent, record: Buffer | undefined, isMasked: boolean): string {
  if (record === undefined) return JSON.stringify(makeEntry(event, isMasked));
  const text = record.toString();
  return isMasked ? JSON.stringify(maskEntry(event, text)) : text;
}

function makeEntry({ logId, occurredAt, fields, message }: ArchivedEvent, isMasked: boolean) {
  const { ip, ua, url, asn, country, ruleId, action } = fields;
  const Headers = ua === "" || isMasked ? [] : [{ Name: "User-Agent", Value: ua }];
  // The platform hides the last octet of an IPv4 address in its records and leaves IPv6 as it is.
  const RemoteIp = isMasked || !ip.includes(":") ? maskAddress(ip) : ip;
  const log = { ServerZoneId: null, Message: message, Url: url, RemoteIp, UrlEncodedBody: null, Headers };
  const status = STATUSES.get(action) ?? action;
  return {
    logId,
    timestamp: occurredAt,
    log: JSON.stringify({ ...log, TriggerMatch: null }),
    labels: { asn, country, ruleId, severity: "", method: "", ruleGroup: "", status, serverZone: "" },
  };
}

function maskEntry(event: ArchivedEvent, text: string): unknown {
  const made = makeEntry(event, true);
  const entry: unknown = JSON.parse(text);
  if (!isObject(entry)) return made;
  const log = typeof entry["log"] === "string" ? maskRecord(entry["log"]) : null;
  const labels = isObject(entry["labels"]) ? entry["labels"] : made.labels;
  return { ...made, log: log ?? made.log, labels };
}
