import { FIELD_NAMES, FIELDS } from "#model/fields.ts";
import { toUrlPart } from "#model/url-parts.ts";
import type { ArchivedEvent } from "./archived-event.ts";
import { readMethod } from "./read-record.ts";
import { toSearchRow } from "./to-search-row.ts";

/**
 * Returns a row as JSON: that of the platform's search, with Longwatch's names of the fields, and with host and path of the
 * URL and the method of the record.
 */
export function toNativeRow(event: ArchivedEvent, record: Buffer | undefined, isMasked: boolean): string {
  const row = JSON.parse(toSearchRow(event, record, isMasked)) as { fields: Record<string, string> };
  const { url } = event.fields;
  const known: Record<string, string> = {
    ...row.fields,
    host: toUrlPart("host", url),
    path: toUrlPart("path", url),
    method: readMethod(record),
  };
  const fields = Object.fromEntries(FIELD_NAMES.map((name) => [name, known[FIELDS[name]] ?? ""]));
  return JSON.stringify({ ...row, fields });
}
