import { sql } from "drizzle-orm";
import { DAY_MS } from "../../src/lib/units.ts";
import type { Span } from "../../src/model/span.ts";
import type { Queryable } from "../client.ts";
import type { CountedVersion } from "./search-memory.ts";

/** A day that was counted in advance, and what of it lies in the window. */
export interface CountedDay extends Span, CountedVersion {
  readonly isWhole: boolean;
}

/**
 * The days of a window of which the counts made in advance are what their events say, as this transaction sees both;
 * ascending. Days past retention are not among them: their events are gone, whatever counts are left.
 */
export async function readCountedDays(
  tx: Queryable,
  zoneId: number,
  { from, to }: Span,
): Promise<CountedDay[]> {
  const first = Math.floor(from / DAY_MS);
  const end = Math.ceil(to / DAY_MS);
  const found = await tx.execute<{ day: number; version: string }>(sql`
    select day - date '1970-01-01' as day, xmin::text as version from cube_days d
    where zone_id = ${zoneId} and built_marks = marks
      and day >= date '1970-01-01' + least(${first}::float8, 3e6)::integer
      and day < date '1970-01-01' + least(${end}::float8, 3e6)::integer
      and to_regclass('waf_events_' || to_char(day, 'YYYYMMDD')) is not null
    order by d.day`);
  return found.rows.map(({ day, version }) => {
    const midnight = day * DAY_MS;
    const part = { from: Math.max(from, midnight), to: Math.min(to, midnight + DAY_MS) };
    return { zoneId, day, version, ...part, isWhole: part.to - part.from === DAY_MS };
  });
}

/** What is left of a window without some parts of it, ascending. */
export function cutOut({ from, to }: Span, parts: readonly Span[]): Span[] {
  const spans: Span[] = [];
  let start = from;
  for (const part of parts) {
    if (part.from > start) spans.push({ from: start, to: part.from });
    start = part.to;
  }
  if (to > start) spans.push({ from: start, to });
  return spans;
}
