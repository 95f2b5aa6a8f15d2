import type { WafEvent } from "#model/waf-event.ts";
import { createTimeWriter, toCopyField } from "../postgres/copy-text.ts";

/** The columns of `toEventRows`, in the same order. */
export const EVENT_COLUMNS =
  "occurred_at, zone_id, log_id, route, feature, rule_id, ip, ja4, ua, url, asn, country, action, message";

/** Returns events in COPY's text format. */
export function toEventRows(zoneId: number, events: readonly WafEvent[]): Buffer {
  const toTime = createTimeWriter();
  let rows = Buffer.allocUnsafe(BYTES_PER_EVENT * events.length);
  let end = 0;
  for (const event of events) {
    const row = toRow(zoneId, event, toTime(event.occurredAt));
    if (end + MAX_BYTES_PER_UNIT * row.length > rows.length) {
      rows = Buffer.concat([rows.subarray(0, end)], 2 * rows.length + MAX_BYTES_PER_UNIT * row.length);
    }
    end += rows.write(row, end);
  }
  return Buffer.from(rows.subarray(0, end));
}

/** Enough for most pages. A page with longer events moves to a larger buffer. */
const BYTES_PER_EVENT = 768;
/** UTF-8 bytes per code unit of a string, at most. */
const MAX_BYTES_PER_UNIT = 3;

function toRow(zoneId: number, event: WafEvent, time: string): string {
  return `${time}\t${zoneId}\t${toCopyField(event.logId)}\t${event.route}\t${toCopyField(
    event.feature,
  )}\t${toCopyField(event.ruleId)}\t${toCopyField(event.ip)}\t${toCopyField(event.ja4)}\t${toCopyField(
    event.ua,
  )}\t${toCopyField(event.url)}\t${toCopyField(event.asn)}\t${toCopyField(event.country)}\t${toCopyField(
    event.action,
  )}\t${toCopyField(event.message)}\n`;
}
