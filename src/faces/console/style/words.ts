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

const two = (value: number) => String(value).padStart(2, "0");

/** Returns the time in the viewer's zone: `08:07:12`. */
export function formatClock(atMs: number, { millis = false } = {}): string {
  const at = new Date(atMs);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return millis ? `${clock}.${String(at.getMilliseconds()).padStart(3, "0")}` : clock;
}

/** Returns day and time in the viewer's zone: `2026-11-22 08:07`. */
export function formatMoment(atMs: number, { seconds = false } = {}): string {
  const at = new Date(atMs);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = formatClock(atMs);
  return `${day} ${seconds ? clock : clock.slice(0, 5)}`;
}

/** How far the viewer's zone is from UTC at that moment: `UTC`, `UTC+1`, `UTC−3:30`. */
export function formatOffset(atMs: number): string {
  const minutes = -new Date(atMs).getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const size = Math.abs(minutes);
  const rest = size % 60;
  return `UTC${minutes > 0 ? "+" : "−"}${Math.floor(size / 60)}${rest === 0 ? "" : `:${two(rest)}`}`;
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
