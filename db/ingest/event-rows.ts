import { toSnakeCase } from "drizzle-orm/casing";
import type { WafEvent } from "#model/waf-event.ts";
import { createTimeWriter, toCopyField } from "../postgres/copy-text.ts";
import { wafEvents } from "../schema/waf-events.ts";

/** The columns of `toEventRows`, in the same order. */
export const EVENT_COLUMNS = [
  ...(["occurredAt", "zoneId", "logId", "route", "feature", "ruleId", "ip"] as const),
  ...(["ja4", "ua", "url", "asn", "country", "action", "message"] as const),
  ...(["method", "requestId", "matchedKey", "facts"] as const),
]
  .map((key) => toSnakeCase(wafEvents[key].name))
  .join(", ");

/** The columns of an event that a look shows. Only a null of one of them, without the address, is filled. */
export const FILLED_KEYS = [
  ...(["feature", "ruleId", "ja4", "ua", "url"] as const),
  ...(["asn", "country", "action", "message"] as const),
];

/** Their names in the database. */
export const FILLED = FILLED_KEYS.map(toSnakeCase);

/** Returns events in COPY's text format. */
export function toEventRows(zoneId: number, events: readonly WafEvent[]): string {
  const toTime = createTimeWriter();
  let rows = "";
  for (const e of events) rows += toRow(zoneId, e, toTime(e.occurredAt));
  return rows;
}

/** Written out, because a list of fields would take three times as long. */
function toRow(zoneId: number, e: WafEvent, time: string): string {
  const [id, feature, rule, ip] = [
    toCopyField(e.logId),
    toCopyField(e.feature),
    toCopyField(e.ruleId),
    toCopyField(e.ip),
  ];
  const [ja4, ua, url, asn] = [toCopyField(e.ja4), toCopyField(e.ua), toCopyField(e.url), toCopyField(e.asn)];
  const [country, action, message] = [toCopyField(e.country), toCopyField(e.action), toCopyField(e.message)];
  const [method, request] = [toCopyField(e.method), toCopyField(e.requestId)];
  return `${time}\t${zoneId}\t${id}\t${e.route}\t${feature}\t${rule}\t${ip}\t${ja4}\t${ua}\t${url}\t${asn}\t${country}\t${action}\t${message}\t${method}\t${request}\t${e.matchedKey ?? "\\N"}\t${e.facts ?? "\\N"}\n`;
}
