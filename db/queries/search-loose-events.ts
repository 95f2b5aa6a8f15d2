import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { TALLIED_COLUMNS } from "../tally-day.ts";
import { type Span, toCondition, toMoment } from "./search-condition.ts";
import type { EventQuery } from "./search-query.ts";

/** What no text is likely to hold; one that does is noticed. */
const SEPARATOR = "\u001F";
const FIELDS = TALLIED_COLUMNS.length + 1;

/** How many events the hours that these spans touch have, by ingest's own counters: a hint. */
export async function countStored(db: Queryable, zoneId: number, spans: readonly Span[]): Promise<number> {
  if (spans.length === 0) return 0;
  const touched = spans.map(
    ({ from, to }) =>
      sql`(starts_at > ${toMoment(from)} - interval '1 hour' and starts_at < ${toMoment(to)})`,
  );
  const found = await db.execute<{ total: number }>(sql`
    select coalesce(sum(stored_count), 0)::float8 as total from coverage_windows
    where zone_id = ${zoneId} and (${sql.join(touched, sql` or `)})`);
  return found.rows[0]?.total ?? 0;
}

/**
 * What tallies are made of, of the events a query finds in parts of its window: flat, of each event its texts in the order
 * of TALLIED_COLUMNS and its time in epoch ms. As one text: rows would take several times as long to be sent and read.
 */
export async function readLooseEvents(
  tx: Queryable,
  zoneId: number,
  query: EventQuery,
  spans: readonly Span[],
): Promise<string[]> {
  const texts = TALLIED_COLUMNS.map((column) => `coalesce(e.${column}, '')`);
  const fields = sql.raw([...texts, "((date_part('epoch', e.occurred_at) * 1000)::bigint)::text"].join(", "));
  const condition = toCondition(zoneId, query, spans);
  const found = await tx.execute<{ total: number; fields: string | null }>(sql`
    select count(*)::float8 as total, string_agg(concat_ws(${SEPARATOR}, ${fields}), ${SEPARATOR}) as fields
    from waf_events e where ${condition}`);
  const [row] = found.rows;
  if (row === undefined || row.fields === null) return [];
  const read = row.fields.split(SEPARATOR);
  if (read.length === row.total * FIELDS) return read;
  // Some text holds the separator, which nothing else makes more fields of.
  const listed = await tx.execute<{ fields: string[] }>(sql`
    select array[${fields}]::text[] as fields from waf_events e where ${condition}`);
  return listed.rows.flatMap((event) => event.fields);
}
