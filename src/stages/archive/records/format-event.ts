import type { EventFormat } from "#model/kinds.ts";
import { type OcsfOptions, toOcsf, type ZonedEvent } from "../ocsf/to-ocsf.ts";
import { toListEntry } from "./to-list-entry.ts";
import { toNativeRow } from "./to-native-row.ts";

/**
 * Returns an event as the JSON text of one object. `raw`: the entry of the platform's list, as received if the record is
 * there. `event`: the row of a search with the zone's id. `ocsf`: an HTTP Activity.
 */
export function formatEvent(
  format: EventFormat,
  event: ZonedEvent,
  record: Buffer | undefined,
  options: OcsfOptions,
): string {
  const { isMasked = false } = options;
  if (format === "raw") return toListEntry(event, record, isMasked);
  if (format === "ocsf") return toOcsf(event, record, options);
  return JSON.stringify({ zoneId: event.zoneId, ...toNativeRow(event, record, isMasked) });
}
