import { sql } from "drizzle-orm";
import { DAY_MS, HOUR_MS, LAST_MS } from "#lib/units.ts";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";
import { toCondition } from "./search-condition.ts";
import type { EventQuery } from "./search-query.ts";

/** A part of a window and how many of its events match. */
export interface OpenCount extends Span {
  readonly total: number;
}

/**
 * Returns how many events of some spans match, day by day. A day is a partition: telling days apart by it costs nothing
 * per match.
 */
export async function countMatches(
  tx: Queryable,
  zoneId: number,
  query: EventQuery,
  spans: readonly Span[],
): Promise<OpenCount[]> {
  if (spans.length === 0) return [];
  const found = await tx.execute<{ first: number; total: number }>(sql`
    select (extract(epoch from min(e.occurred_at)) * 1000)::float8 as first, count(*)::float8 as total
    from waf_events e where ${toCondition(zoneId, query, spans)} group by e.tableoid`);
  return found.rows.map(({ first, total }) => {
    const from = first - (first % DAY_MS);
    return { from, to: from + DAY_MS, total };
  });
}

/**
 * Returns how many events lie in some spans, in parts of an hour at most. Whole hours are as ingest counts them while it
 * stores; cut hours are counted. Hours of days past retention are not among them.
 */
export async function countEvents(
  tx: Queryable,
  zoneId: number,
  spans: readonly Span[],
): Promise<OpenCount[]> {
  if (spans.length === 0) return [];
  const whole = spans.flatMap(({ from, to }) => {
    const [first, end] = [Math.ceil(from / HOUR_MS) * HOUR_MS, Math.floor(to / HOUR_MS) * HOUR_MS];
    return end > first ? [{ from: first, to: end }] : [];
  });
  const cut = spans.flatMap(({ from, to }) => {
    const [first, end] = [Math.ceil(from / HOUR_MS) * HOUR_MS, Math.floor(to / HOUR_MS) * HOUR_MS];
    if (first > end) return [{ from, to }];
    return [
      { from, to: first },
      { from: end, to },
    ].filter((part) => part.to > part.from);
  });
  const counts: OpenCount[] = [];
  if (whole.length > 0) {
    const isInside = whole.map(
      ({ from, to }) =>
        sql`(starts_at >= ${new Date(from)} and starts_at < ${new Date(Math.min(to, LAST_MS))})`,
    );
    const found = await tx.execute<{ from: number; total: number }>(sql`
      select (extract(epoch from starts_at) * 1000)::float8 as from, stored_count::float8 as total
      from coverage_windows
      where zone_id = ${zoneId}::integer and stored_count > 0 and (${sql.join(isInside, sql` or `)})
        and to_char(starts_at at time zone 'UTC', 'YYYYMMDD') in (
          select right(c.relname, 8) from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'waf_events'::regclass)`);
    counts.push(...found.rows.map(({ from, total }) => ({ from, to: from + HOUR_MS, total })));
  }
  for (const part of cut) {
    const found = await tx.execute<{ total: number }>(sql`
      select count(*)::float8 as total from waf_events e
      where ${toCondition(zoneId, { ...part, clauses: [] })}`);
    const total = found.rows[0]?.total ?? 0;
    if (total > 0) counts.push({ ...part, total });
  }
  return counts;
}
