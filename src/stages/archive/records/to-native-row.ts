import { FIELD_NAMES, FIELDS, type FieldName } from "#model/fields.ts";
import { toUrlPart } from "#model/record-parts.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import { readMethod } from "./read-record.ts";
import { toSearchRow } from "./to-search-row.ts";

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
export function toNativeRow(event: ArchivedEvent, record: Buffer | undefined, isMasked: boolean): NativeRow {
  const row = JSON.parse(toSearchRow(event, record, isMasked)) as NativeRow;
  const { url } = event.fields;
  const known: Record<string, string> = {
    ...row.fields,
    host: toUrlPart("host", url),
    path: toUrlPart("path", url),
    method: readMethod(record),
  };
  const fields = Object.fromEntries(FIELD_NAMES.map((name) => [name, known[FIELDS[name]] ?? ""]));
  return { ...row, fields } as NativeRow;
}
