/** Writes an event as each route of the platform shows it. */
import type { Dimension } from "#platform/contract/event-logs.ts";
import type { Fault } from "../faults.ts";
import { type Draft, hexWord, logIdOf } from "./draft.ts";
import { TRIGGER_KEYS } from "./payloads.ts";
import { hashText } from "./random.ts";

/** The words of `labels.status` by action. */
const STATUS = { block: "Blocked", log: "Logged", challenge: "Challenged" } as const;

const SERVER_ZONES: readonly (readonly [id: number, code: string])[] = [
  [11, "DE"],
  [14, "NY"],
  [19, "SG"],
  [23, "LA"],
  [31, "UK"],
  [37, "JP"],
];

const FORM = "application/x-www-form-urlencoded";

/** Masks an address like the platform's records: the last octet of IPv4 is hidden, IPv6 stays. */
function maskIp(ip: string): string {
  return ip.includes(":") ? ip : ip.replace(/\d+$/, "*");
}

function serverZoneOf(draft: Draft): readonly [id: number, code: string] {
  return SERVER_ZONES[draft.id[3] % SERVER_ZONES.length] ?? [11, "DE"];
}

function headersOf(draft: Draft): { Name: string; Value: string }[] {
  const { headers: own, body, contentType = body === null ? null : FORM } = draft;
  const isHostMatch = own === undefined && draft.rule.family === "protocol";
  const headers = [
    { Name: "Host", Value: isHostMatch ? draft.match : draft.host },
    { Name: "User-Agent", Value: draft.ua },
    { Name: "X-Forwarded-Proto", Value: "https" },
    { Name: "CDN-RequestId", Value: draft.requestId.map(hexWord).join("") },
  ];
  if (contentType !== null) headers.push({ Name: "Content-Type", Value: contentType });
  return own === undefined ? headers : [...headers, ...own];
}

/**
 * Returns the platform's record of a request. The date-paged list returns it as a string of JSON, the search as an
 * object.
 */
function logOf(draft: Draft) {
  return {
    ServerZoneId: serverZoneOf(draft)[0],
    Message: draft.rule.message,
    Url: draft.url,
    RemoteIp: maskIp(draft.ip),
    UrlEncodedBody: draft.body,
    Headers: headersOf(draft),
    TriggerMatch: { Key: draft.trigger ?? TRIGGER_KEYS[draft.rule.family], Value: draft.match },
  };
}

export function fieldsOf(draft: Draft): Record<Dimension, string> {
  return {
    feature: draft.rule.feature,
    ruleId: draft.rule.ruleId,
    ip: draft.ip,
    ja4: draft.ja4,
    ua: draft.ua,
    url: draft.url,
    asn: draft.asn,
    country: draft.country,
    action: draft.action,
  };
}

/** Returns one entry of the date-paged list (platform API spec 2.7): `log` is text, every label is a string. */
export function toListEntry(draft: Draft) {
  return {
    logId: logIdOf(draft.id),
    timestamp: draft.at,
    log: JSON.stringify(logOf(draft)),
    labels: {
      asn: draft.asn,
      country: draft.country,
      ruleId: draft.rule.ruleId,
      severity: "",
      method: draft.method,
      ruleGroup: "",
      status: STATUS[draft.action],
      serverZone: serverZoneOf(draft)[1],
    },
  };
}

/** Returns one row of a flat search (platform API spec 2.4). */
export function toSearchRow(draft: Draft) {
  return { logId: logIdOf(draft.id), timestamp: draft.at, log: logOf(draft), fields: fieldsOf(draft) };
}

/** Returns one line of the oracle. */
export function toOracleLine(draft: Draft): string {
  return `${JSON.stringify({ logId: logIdOf(draft.id), timestamp: draft.at, ...fieldsOf(draft), log: logOf(draft) })}\n`;
}

/** Returns one line of the oracle's short form. */
export function toIdLine(draft: Draft): string {
  return `{"logId":"${logIdOf(draft.id)}","timestamp":${draft.at}}\n`;
}

/** Returns a number in [0, 1), the same for an event in every pass. */
export function shareOf(draft: Draft): number {
  return hashText(logIdOf(draft.id)) / 2 ** 32;
}

/** Returns an entry as it is sent, in another form if one of the faults changes its event. */
export function withOddity(
  draft: Draft,
  entry: Parameters<typeof toOddEntry>[0],
  faults: readonly Fault[],
): object {
  const odd = faults.find((fault) => fault.kind === "odd-entries" && shareOf(draft) < fault.share);
  return odd?.kind === "odd-entries" ? toOddEntry(entry, odd.shape) : entry;
}

/** Forms in which the platform may send an entry although its contract says otherwise. `unreadable` is no event in any form. */
export const SHAPES = [
  "unreadable",
  "fraction",
  "seconds",
  "other-log",
  "lower-headers",
  "match-list",
] as const;
type Shape = (typeof SHAPES)[number];

interface Entry {
  readonly logId: string;
  readonly timestamp: number;
  readonly log: unknown;
}

/** Returns an entry of the list, or a row of the search, in another form. `other-log` swaps text and object. */
function toOddEntry(entry: Entry, shape: Shape): object {
  const { logId, timestamp, log } = entry;
  if (shape === "unreadable") return { ...entry, logId: { "\u001b[31m<b>https://evil.example": logId } };
  if (shape === "fraction") return { ...entry, timestamp: timestamp + 0.25 };
  if (shape === "seconds") return { ...entry, timestamp: timestamp / 1_000 };
  const isText = typeof log === "string";
  const record = (isText ? JSON.parse(log) : log) as {
    Headers: Record<string, unknown>[];
    TriggerMatch: unknown;
  };
  const changed =
    shape === "lower-headers"
      ? { ...record, Headers: record.Headers.map(({ Name, Value }) => ({ name: Name, value: Value })) }
      : shape === "match-list"
        ? { ...record, TriggerMatch: [record.TriggerMatch] }
        : record;
  return { ...entry, log: isText === (shape === "other-log") ? changed : JSON.stringify(changed) };
}
