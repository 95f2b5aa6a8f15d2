import { EventLog, type EventLogEntry } from "#adapters/edge/contract/event-log-list.ts";
import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/clean-text.ts";
import { parseJson } from "#lib/parse-json.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { readAction } from "./read-action.ts";

/**
 * Converts an entry of the date-paged list (platform API spec 2.7) to an event. The list has no feature and no JA4,
 * often leaves a label empty that the search fills, and masks IPv4 addresses. So a value that the list leaves empty
 * is unknown, not empty.
 */
export function toListEvent(entry: EventLogEntry): WafEvent {
  const { labels } = entry;
  const log = EventLog.safeParse(entry.log === null ? undefined : parseJson(entry.log));
  const label = (text: string) => (text === "" ? null : cleanText(text, MAX_DIMENSION_CHARS));
  const recorded = (text: string | undefined, maxChars: number) =>
    text === undefined || text === "" ? null : cleanText(text, maxChars);
  const record = log.success ? log.data : undefined;
  return {
    occurredAt: entry.timestamp,
    logId: entry.logId,
    route: "list",
    feature: null,
    ruleId: label(labels.ruleId),
    ip: recorded(record?.RemoteIp, MAX_DIMENSION_CHARS),
    ja4: null,
    ua: recorded(record?.Headers.find(isUserAgent)?.Value, MAX_TEXT_CHARS),
    url: recorded(record?.Url, MAX_TEXT_CHARS),
    asn: label(labels.asn),
    country: label(labels.country),
    action: label(readAction(labels.status)),
    message: recorded(record?.Message, MAX_TEXT_CHARS),
  };
}

function isUserAgent(header: { Name: string }): boolean {
  return header.Name.length === 10 && header.Name.toLowerCase() === "user-agent";
}
