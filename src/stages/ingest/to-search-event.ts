import { EventLog, type EventRow } from "#adapters/edge/contract/event-logs.ts";
import { parseJson } from "#lib/json.ts";
import { cleanText, MAX_DIMENSION_CHARS, MAX_TEXT_CHARS } from "#lib/text.ts";
import { toPlainAddress } from "#model/ip-address.ts";
import type { EventWithoutFacts } from "#model/waf-event.ts";

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
