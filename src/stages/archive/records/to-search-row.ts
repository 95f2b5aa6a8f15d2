import { isObject } from "#lib/json.ts";
import { cleanText, MAX_TEXT_CHARS } from "#lib/text.ts";
import { findHeader } from "#model/record-parts.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import { maskAddress } from "../mask/mask.ts";
import { readRecord } from "./read-record.ts";

/** Only such a text can differ from the platform's: NUL and broken surrogates were replaced, or its end was cut. */
const MADE_STORABLE = /\uFFFD|…$/;

/**
 * Returns a row of a flat search (platform API spec 2.4) as JSON. `log` is the unchanged text of the record as the
 * platform sent it; null if no record is stored, or if the text is not an object. Masked rows have no record.
 */
export function toSearchRow(event: ArchivedEvent, record: Buffer | undefined, isMasked: boolean): string {
  const { logId, occurredAt, fields } = event;
  const log = isMasked || record === undefined ? null : readLog(record);
  const shown = isMasked ? { ...fields, ip: maskAddress(fields.ip) } : restoreTexts(fields, log?.value);
  return `{"logId":${JSON.stringify(logId)},"timestamp":${occurredAt},"log":${log?.text ?? "null"},"fields":${JSON.stringify(shown)}}`;
}

function readLog(record: Buffer): { text: string; value: Record<string, unknown> } | null {
  const text = readRecord(record)?.log ?? null;
  if (text === null) return null;
  try {
    // The text goes into the answer unchanged, so it must be one JSON object and nothing else.
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { text, value } : null;
  } catch {
    return null;
  }
}

/**
 * Returns the dimensions in the platform's order. A text that was changed for storage is taken from the record
 * instead.
 */
export function restoreTexts(fields: ArchivedEvent["fields"], log: Record<string, unknown> | undefined) {
  const { feature, ruleId, ip, ja4, asn, country, action } = fields;
  const whole = (kept: string, recorded: unknown) =>
    typeof recorded === "string" && MADE_STORABLE.test(kept) && isKeptAs(recorded, kept) ? recorded : kept;
  const ua = whole(fields.ua, log === undefined ? undefined : findHeader(log["Headers"], "user-agent"));
  const url = whole(fields.url, log?.["Url"]);
  return { feature, ruleId, ip, ja4, ua, url, asn, country, action };
}

function isKeptAs(recorded: string, kept: string): boolean {
  return cleanText(recorded, MAX_TEXT_CHARS) === kept;
}
