import { sql } from "drizzle-orm";
import type { Span } from "../../src/model/span.ts";
import type { Queryable } from "../client.ts";
import type { LooseEvents } from "./merge-tallies.ts";
import { toCondition, toMoment } from "./search-condition.ts";
import type { EventQuery } from "./search-query.ts";
import { TALLIED_COLUMNS } from "./tally-day.ts";

/** What no text is likely to hold; one that does is noticed. */
const SEPARATOR = "\u001F";
const FIELDS = [
  ...TALLIED_COLUMNS.map((column) => `coalesce(e.${column}, '')`),
  "((date_part('epoch', e.occurred_at) * 1000)::bigint)::text",
];

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
 * The events a query finds in parts of its window, in no order. Every column as one text: rows would take several times as
 * long to be sent and read.
 */
export async function readLooseEvents(
  tx: Queryable,
  zoneId: number,
  query: EventQuery,
  spans: readonly Span[],
): Promise<LooseEvents> {
  const condition = toCondition(zoneId, query, spans);
  const columns = FIELDS.map(
    (field, column) => sql`string_agg(${sql.raw(field)}, ${SEPARATOR}) as ${sql.raw(`f${column}`)}`,
  );
  const found = await tx.execute<Record<string, string | number | null>>(sql`
    select count(*)::float8 as total, ${sql.join(columns, sql`, `)}
    from waf_events e where ${condition}`);
  const row: Record<string, string | number | null> = found.rows[0] ?? {};
  const total = Number(row["total"] ?? 0);
  const read = FIELDS.map((_, column) => (total === 0 ? [] : String(row[`f${column}`]).split(SEPARATOR)));
  if (read.every(({ length }) => length === total)) return toLooseEvents(read);
  // Some text holds the separator: nothing else makes more fields than there are events.
  const listed = await tx.execute<{ fields: string[] }>(sql`
    select array[${sql.raw(FIELDS.join(", "))}]::text[] as fields from waf_events e where ${condition}`);
  return toLooseEvents(FIELDS.map((_, column) => listed.rows.map((event) => event.fields[column] ?? "")));
}

function toLooseEvents(columns: readonly (readonly string[])[]): LooseEvents {
  return { texts: columns.slice(0, -1), times: (columns.at(-1) ?? []).map(Number) };
}
