import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import type { Span } from "./search-condition.ts";

const DAY_MS = 86_400_000;

/**
 * The days (UTC, `yyyy-mm-dd`) that lie wholly in a window and whose counts made in advance are what their events say, as
 * this transaction sees both; ascending. Days past retention are not among them: their events are gone, whatever counts
 * are left.
 */
export async function readCountedDays(tx: Queryable, zoneId: number, { from, to }: Span): Promise<string[]> {
  const first = Math.ceil(from / DAY_MS);
  const end = Math.floor(to / DAY_MS);
  if (end <= first) return [];
  const found = await tx.execute<{ day: string }>(sql`
    select to_char(day, 'YYYY-MM-DD') as day from cube_days d
    where zone_id = ${zoneId} and built_marks = marks
      and day >= date '1970-01-01' + least(${first}::float8, 3e6)::integer
      and day < date '1970-01-01' + least(${end}::float8, 3e6)::integer
      and to_regclass('waf_events_' || to_char(day, 'YYYYMMDD')) is not null
    order by d.day`);
  return found.rows.map(({ day }) => day);
}

/** What is left of a window without some days of it, ascending. */
export function cutOut({ from, to }: Span, days: readonly string[]): Span[] {
  const spans: Span[] = [];
  let start = from;
  for (const day of days) {
    const dayStart = Date.parse(`${day}T00:00:00Z`);
    if (dayStart > start) spans.push({ from: start, to: dayStart });
    start = dayStart + DAY_MS;
  }
  if (to > start) spans.push({ from: start, to });
  return spans;
}
