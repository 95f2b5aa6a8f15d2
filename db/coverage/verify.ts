import { type SQL, sql } from "drizzle-orm";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";
import { wafEvents } from "../schema/waf-events.ts";

export interface CountedHour {
  readonly startsAt: number;
  readonly events: number;
  /** The count in the hour's row; 0 without a row. */
  readonly counted: number;
}

/** Returns every hour of the span that has events or a row, oldest first. Both counts come from one snapshot. */
export async function countHours(db: Queryable, zoneId: number, span: Span): Promise<CountedHour[]> {
  const { rows } = await db.execute<{ startsAt: number; events: number; counted: number }>(sql`
    select extract(epoch from starts_at)::float8 * 1000 as "startsAt", coalesce(events, 0)::integer as events,
      coalesce(stored_count, 0) as counted
    from (select date_trunc('hour', occurred_at) as starts_at, count(*) as events
          from ${wafEvents} where ${isWithin(zoneId, span)} group by 1) e
    full join (select starts_at, stored_count from coverage_windows
          where zone_id = ${zoneId} and starts_at >= ${new Date(span.from)} and starts_at < ${new Date(span.to)}) w
      using (starts_at)
    order by 1`);
  return rows;
}

/** A stored event with the values that `verify` compares. */
export interface StoredValues {
  readonly logId: string;
  /** Null if the search has not shown the event, or if its person was erased. */
  readonly values: Readonly<Record<ComparedField, string | null>> | null;
  /** Whether every route has withdrawn the event. */
  readonly isWithdrawn: boolean;
}

export const COMPARED = ["ruleId", "ip", "url", "ua", "country", "asn", "action"] as const;
export type ComparedField = (typeof COMPARED)[number];

/** Returns a span's events. */
export async function readStoredValues(db: Queryable, zoneId: number, span: Span): Promise<StoredValues[]> {
  const { rows } = await db.execute<{ [Key in keyof StoredValues]: StoredValues[Key] }>(sql`
    select log_id as "logId", case when feature is not null and ip is distinct from 'erased' then jsonb_build_object(
        'ruleId', rule_id, 'ip', ip, 'url', url, 'ua', ua, 'country', country, 'asn', asn, 'action', action) end as values,
      exists (select from event_revisions r where r.zone_id = waf_events.zone_id and r.occurred_at = waf_events.occurred_at
        and r.log_id = waf_events.log_id and r.field = 'withdrawn' and r.accepted_at is not null) as "isWithdrawn"
    from ${wafEvents} where ${isWithin(zoneId, span)}`);
  return rows;
}

/** Returns the keys of the events that the list showed first; times in epoch ms. */
export async function readListedEvents(
  db: Queryable,
  zoneId: number,
  span: Span,
): Promise<{ occurredAt: number; logId: string }[]> {
  const { rows } = await db.execute<{ occurredAt: number; logId: string }>(sql`
    select (extract(epoch from occurred_at) * 1000)::float8 as "occurredAt", log_id as "logId" from ${wafEvents}
    where ${isWithin(zoneId, span)} and route = 'list'`);
  return rows;
}

function isWithin(zoneId: number, { from, to }: Span): SQL {
  return sql`zone_id = ${zoneId} and occurred_at >= ${new Date(from)} and occurred_at < ${new Date(to)}`;
}
