import { formatDuration, formatNumber, showTime } from "#lib/format.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { FieldName } from "#model/fields.ts";
import type { ActionClass } from "#model/kinds.ts";

/** The words of the page for the fields of an event that are not called by their name. */
export const FIELD_WORDS: Partial<Record<FieldName, string>> = {
  url: "whole URL",
  agent: "user agent",
  ja4: "TLS fingerprint",
};
export function wordField(field: FieldName): string {
  return FIELD_WORDS[field] ?? field;
}

/** The members of a silence's matchers, with the words of the page. */
export const MATCHERS: Readonly<Record<string, string>> = {
  ip: "address",
  asn: "network",
  ja4: "TLS fingerprint",
  ua: "user agent",
  url: "path",
};

export const NO_VALUE = "(none)";

const count = new Intl.NumberFormat("en-US");
export function formatCount(value: number): string {
  return count.format(value);
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];
export function formatBytes(bytes: number): string {
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  return `${formatNumber(bytes / 1_000 ** step)} ${UNITS[step]}`;
}

const STORED = "longwatch-times-in-utc";
/** Whether this browser shows all times in UTC instead of the viewer's zone. */
export function isInUtc(): boolean {
  return typeof localStorage !== "undefined" && localStorage.getItem(STORED) === "on";
}

/** Shows all times in the other zone, after the page is loaded again: every chart and table has drawn them. */
export function switchZone(): void {
  if (isInUtc()) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, "on");
  globalThis.location.reload();
}

/** Minutes from UTC to the shown times at that moment. */
function offsetAt(atMs: number): number {
  return isInUtc() ? 0 : -new Date(atMs).getTimezoneOffset();
}

function isoShown(atMs: number): string {
  return new Date(atMs + offsetAt(atMs) * MINUTE_MS).toISOString();
}

/** Returns the shown time: `08:07:12`. */
export function formatClock(atMs: number, { millis = false } = {}): string {
  return isoShown(atMs).slice(11, millis ? 23 : 19);
}

/** Returns the shown day and time: `2026-11-22 08:07`. */
export function formatMoment(atMs: number, { seconds = false } = {}): string {
  return isoShown(atMs)
    .slice(0, seconds ? 19 : 16)
    .replace("T", " ");
}

/** Returns the time of a text of `formatMoment`; NaN for any other text. */
export function parseMoment(text: string): number {
  return Date.parse(isInUtc() ? `${text}Z` : text);
}

/** How far the shown times are from UTC at that moment: `UTC`, `UTC+1`, `UTC−3:30`. */
export function formatOffset(atMs: number): string {
  const minutes = offsetAt(atMs);
  if (minutes === 0) return "UTC";
  const size = Math.abs(minutes);
  const rest = size % 60;
  return `UTC${minutes > 0 ? "+" : "−"}${Math.floor(size / 60)}${rest === 0 ? "" : `:${String(rest).padStart(2, "0")}`}`;
}

export function formatUtc(atMs: number): string {
  return `${showTime(atMs)} UTC`;
}

/** `12 s ago`, `5 min ago`, `in 2 h 5 min`. */
export function formatAgo(atMs: number, nowMs: number): string {
  const ageMs = nowMs - atMs;
  if (Math.abs(ageMs) < 1_000) return "now";
  return ageMs > 0 ? `${formatDuration(ageMs)} ago` : `in ${formatDuration(-ageMs)}`;
}

/** The length of a span in words: `24 hours`, `7 days`, `35 minutes`. */
export function formatLength(ms: number): string {
  if (ms % DAY_MS === 0 && ms > 3 * DAY_MS) return `${ms / DAY_MS} days`;
  if (ms >= 2 * HOUR_MS && ms <= 4 * DAY_MS) return `${formatNumber(ms / HOUR_MS)} hours`;
  if (ms > 4 * DAY_MS) return `${formatNumber(ms / DAY_MS)} days`;
  return ms < MINUTE_MS * 2
    ? `${formatNumber(ms / 1_000)} seconds`
    : `${formatNumber(ms / MINUTE_MS)} minutes`;
}

export const ACTION_COLOURS: Readonly<Record<ActionClass, string>> = {
  blocked: "var(--lw-blocked)",
  challenged: "var(--lw-challenged)",
  logged: "var(--lw-logged)",
  other: "var(--lw-other)",
};
