import { DAY_MS } from "#lib/units.ts";

/** Number of served UTC days: today and the two before it. */
const SERVED_DAYS = 3;

/** Returns a UTC day of the list's path, `MM-dd-yyyy`; `undefined` when it is not a calendar day. */
export function parseDay(text: string): number | undefined {
  const match = /^(\d{2})-(\d{2})-(\d{4})$/.exec(text);
  if (match === null) return undefined;
  const [, month, day, year] = match;
  const startMs = Date.parse(`${year}-${month}-${day}T00:00:00.000Z`);
  // Date.parse turns 31 February into a day of March.
  return Number.isNaN(startMs) || new Date(startMs).getUTCDate() !== Number(day) ? undefined : startMs;
}

export function isServedDay(startMs: number, nowMs: number): boolean {
  const todayMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  return startMs <= todayMs && startMs > todayMs - SERVED_DAYS * DAY_MS;
}
