import { DAY_MS } from "#lib/units.ts";

const UNIT_MS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

/** Eleven digits. A smaller number is a time in seconds, typed by mistake. */
const FIRST_EPOCH_MS = 10_000_000_000;

export const TIME_RULE =
  "epoch milliseconds, a time such as 2026-11-27T20:51 or 2026-11-27 20:51 (UTC if it names no zone), now, today, yesterday, or relative such as -2h";

/** ISO 8601, and the forms in which Longwatch prints times. */
const WRITTEN =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(?: ?(UTC|Z|[+-]\d\d:?\d\d))?)?(?: UTC)?$/i;
const RELATIVE = /^([+-])((?:\d{1,9}(?:\.\d{1,6})?(?:ms|[smhdw]))+)$/;

function parseWritten(text: string): number | null {
  const [, day, time = "00:00", zone = "Z"] = WRITTEN.exec(text) ?? [];
  if (day === undefined) return null;
  const at = Date.parse(`${day}T${time}${zone.toUpperCase() === "UTC" ? "Z" : zone}`);
  // Date.parse rolls 02-30 over into March.
  const isReal = !Number.isNaN(at) && new Date(`${day}T00:00:00Z`).getUTCDate() === Number(day.slice(8, 10));
  return isReal ? at : null;
}

/** Parses a time as people type it, or as Longwatch prints it. Returns epoch ms, or null if the text is no time. */
export function parseTime(given: string, nowMs: number): number | null {
  const text = given.trim();
  if (text === "now") return nowMs;
  const today = nowMs - (nowMs % DAY_MS);
  if (text === "today") return today;
  if (text === "yesterday") return today - DAY_MS;
  const [, sign, spans] = RELATIVE.exec(text) ?? [];
  if (spans !== undefined) {
    const parts = [...spans.matchAll(/([\d.]+)(ms|[smhdw])/g)];
    const spanMs = parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNIT_MS[unit] ?? 0), 0);
    return Math.round(sign === "-" ? nowMs - spanMs : nowMs + spanMs);
  }
  if (/^\d{1,15}$/.test(text)) return Number(text) >= FIRST_EPOCH_MS ? Number(text) : null;
  return parseWritten(text);
}
