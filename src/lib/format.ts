/** Numbers, durations and times for people. */
import type { z } from "zod";
import { clampTime, MINUTE_MS } from "./units.ts";

const formatTenths = createFormat({ maximumFractionDigits: 1 });
const formatFraction = createFormat({ maximumSignificantDigits: 2 });
/** A smaller number is shown as below it. */
const LEAST_SHOWN = 0.001;
/** Formats a number without decimals: 9, 1,204. */
export const formatWhole = createFormat({ maximumFractionDigits: 0 });
const formatCompact = createFormat({ notation: "compact", maximumFractionDigits: 1 });

/** Made on first use: the first one takes 10 ms, and most commands show no number. */
function createFormat(options: Intl.NumberFormatOptions): (value: number) => string {
  let format: Intl.NumberFormat | undefined;
  return (value) => (format ??= new Intl.NumberFormat("en-US", options)).format(value);
}

/** Formats a number with at most one decimal, and a fraction with two digits, so that it is never 0: 9.4, 1,204, 0.035. */
export function formatDecimal(value: number): string {
  if (value <= 0 || value >= 1) return formatTenths(value);
  return value < LEAST_SHOWN ? `<${LEAST_SHOWN}` : formatFraction(value);
}

/** Formats a number as `formatDecimal` does below ten, else without decimals: 0.035, 3.4, 68, 1,204. */
export function formatRounded(value: number): string {
  return value < 10 ? formatDecimal(value) : formatWhole(value);
}

/** Formats a number as `formatRounded` does, with at most nine characters: 0.035, 3.4, 68, 1,204, 12.3M. */
export function formatNumber(value: number): string {
  if (value >= 1e15) return value.toExponential(1);
  return value >= 1e7 ? formatCompact(value) : formatRounded(value);
}

/** Returns `1 hour`, `2,000 hours`. `more` is the plural where it is not `one` with an s. */
export function many(number: number, one: string, more = `${one}s`): string {
  return `${formatWhole(number)} ${number === 1 ? one : more}`;
}

/** Formats a share from 0 to 1: 40 %, and `<1 %` for what is there and would round to nothing. */
export function formatShare(share: number): string {
  return share > 0 && share < 0.005 ? "<1 %" : `${formatWhole(share * 100)} %`;
}

/** Formats a number of hours in a sentence: `24 minutes`, `1 hour`, `9.5 hours`. Rounds down, because it is a time left. */
export function formatHours(hours: number): string {
  if (hours < 1) return many(Math.floor(Math.max(hours, 0) * 60), "minute");
  const rest = Math.floor(hours * 10) / 10;
  return `${formatDecimal(rest)} ${rest === 1 ? "hour" : "hours"}`;
}

/** Formats a time as ISO 8601 in UTC with a year of four digits. A time outside 1970 to 9999 becomes the nearer end. */
export function formatIso(atMs: number): string {
  return new Date(clampTime(atMs)).toISOString();
}

export function isTimeZone(text: string): boolean {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: text }) instanceof Intl.DateTimeFormat;
  } catch {
    return false;
  }
}

/** Returns a function that formats a time as ISO 8601 with the offset of a time zone such as Europe/Amsterdam. Without a zone: UTC. */
export function createIsoFormat(timeZone?: string): (atMs: number) => string {
  if (timeZone === undefined) return formatIso;
  const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  return (given) => {
    const atMs = clampTime(given);
    const [offset = "+00:00", sign, hours = 0, minutes = 0] =
      /([+-])(\d\d):(\d\d)/.exec(format.format(atMs)) ?? [];
    const offsetMs = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS * (sign === "-" ? -1 : 1);
    return `${new Date(atMs + offsetMs).toISOString().slice(0, -1)}${offset}`;
  };
}

/** Formats a duration with its two largest units: `45 s`, `23 min`, `2 h 5 min`, `3 d 4 h`. */
export function formatDuration(durationMs: number): string {
  const minutes = Math.floor(durationMs / MINUTE_MS);
  if (minutes < 1) return `${Math.max(Math.floor(durationMs / 1_000), 0)} s`;
  const [days, hours, rest] = [Math.floor(minutes / 1_440), Math.floor(minutes / 60) % 24, minutes % 60];
  if (days > 0) return hours === 0 ? `${days} d` : `${days} d ${hours} h`;
  if (hours > 0) return rest === 0 ? `${hours} h` : `${hours} h ${rest} min`;
  return `${rest} min`;
}

const UNITS = [
  { unit: "s", ms: 1_000, below: 120 },
  { unit: "min", ms: 60_000, below: 120 },
  { unit: "h", ms: 3_600_000, below: 72 },
] as const;

/** Returns a duration such as `4 s`, `7 min`, `3 h` or `12 d`. A negative duration becomes `0 s`. */
export function showAge(ms: number): string {
  for (const { unit, ms: length, below } of UNITS) {
    const count = Math.max(0, Math.round(ms / length));
    if (count < below) return `${count} ${unit}`;
  }
  return `${Math.round(ms / 86_400_000)} d`;
}

/** Returns a text such as `4 s ago`. */
export function ago(ms: number): string {
  return `${showAge(ms)} ago`;
}

/** Formats epoch ms or an ISO time for people, in UTC: `2026-11-21 14:03`, with the seconds if they are not zero. */
export function showTime(at: number | string): string {
  const text = formatIso(typeof at === "string" ? Date.parse(at) : at);
  return text.slice(0, text.slice(17, 19) === "00" ? 16 : 19).replace("T", " ");
}

/** Returns the rule of a bound that a value breaks, in words; null for an issue that is no bound, or that has words of its own. */
export function wordBound(issue: z.core.$ZodIssue): string | null {
  if (issue.code !== "too_small" && issue.code !== "too_big") return null;
  if (!/^Too (small|big)/.test(issue.message)) return null;
  const [most, bound] =
    issue.code === "too_small" ? ["at least", Number(issue.minimum)] : ["at most", Number(issue.maximum)];
  if (issue.origin === "string") return `must have ${most} ${many(bound, "character")}`;
  return issue.origin === "array" ? `must have ${most} ${many(bound, "item")}` : `must be ${most} ${bound}`;
}

/** Returns the time in whole seconds, as a person types it: `2026-11-21T14:00:00Z`. */
export function showIso(at: number): string {
  return new Date(Math.floor(at / 1_000) * 1_000).toISOString().replace(".000Z", "Z");
}
