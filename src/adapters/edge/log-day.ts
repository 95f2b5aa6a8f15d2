import { z } from "zod";

/** Returns the UTC day of a time (epoch ms) in the date-paged list's format: `MM-dd-yyyy`. */
export function toLogDay(atMs: number): string {
  const [year, month, day] = new Date(atMs).toISOString().slice(0, 10).split("-");
  return `${month}-${day}-${year}`;
}

/** Returns the start of a UTC day `MM-dd-yyyy` in epoch ms, or null when it is no day of the calendar. */
export function parseLogDay(text: string): number | null {
  const match = /^(\d{2})-(\d{2})-(\d{4})$/.exec(text);
  if (match === null) return null;
  const startsAt = Date.parse(`${match[3]}-${match[1]}-${match[2]}T00:00:00Z`);
  // Date.parse turns 02-30 into a day of March.
  return Number.isNaN(startsAt) || toLogDay(startsAt) !== text ? null : startsAt;
}

export const LogDay = z
  .string()
  .refine((text) => parseLogDay(text) !== null, "must be a day written MM-dd-yyyy");
