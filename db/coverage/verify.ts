import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { eventRevisions } from "../schema/event-revisions.ts";
import { wafEvents } from "../schema/waf-events.ts";

const e = alias(wafEvents, "e");
const w = alias(coverageWindows, "w");
const r = alias(eventRevisions, "r");

export interface CountedHour {
  readonly startsAt: number;
  readonly events: number;
  /** The count in the hour's row; 0 without a row. */
  readonly counted: number;
}

/** Returns every hour of the span that has events or a row, oldest first. Both counts come from one snapshot. */
export async function countHours(db: Queryable, zoneId: number, span: Span): Promise<CountedHour[]> {
  const { rows } = await db.execute<{ startsAt: number; events: number; counted: number }>(sql`
    select ${epochMs(sql`starts_at`)} as "startsAt", coalesce(events, 0)::integer as events,
      coalesce(stored_count, 0) as counted
    from (select date_trunc('hour', ${e.occurredAt}) as starts_at, count(*) as events
          from ${wafEvents} ${e} where ${isWithin(zoneId, span)} group by 1) e
    full join (select ${w.startsAt}, ${w.storedCount} from ${coverageWindows} ${w}
          where ${w.zoneId} = ${zoneId}
            and ${w.startsAt} >= ${new Date(span.from)} and ${w.startsAt} < ${new Date(span.to)}) w
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

export const COMPARED = [
  "ruleId",
  "ip",
  "url",
  "ua",
  "country",
  "asn",
  "action",
] as const satisfies (keyof typeof e)[];
export type ComparedField = (typeof COMPARED)[number];

const VALUES = sql.join(
  COMPARED.map((field) => sql`${field}::text, ${e[field]}`),
  sql`, `,
);

/** Returns a span's events. */
export async function readStoredValues(db: Queryable, zoneId: number, span: Span): Promise<StoredValues[]> {
  const { rows } = await db.execute<{ [Key in keyof StoredValues]: StoredValues[Key] }>(sql`
    select ${e.logId} as "logId",
      case when ${e.feature} is not null and ${e.ip} is distinct from 'erased' then jsonb_build_object(${VALUES}) end as values,
      exists (select from ${eventRevisions} ${r} where ${r.zoneId} = ${e.zoneId} and ${r.occurredAt} = ${e.occurredAt}
        and ${r.logId} = ${e.logId} and ${r.field} = 'withdrawn' and ${r.acceptedAt} is not null) as "isWithdrawn"
    from ${wafEvents} ${e} where ${isWithin(zoneId, span)}`);
  return rows;
}

/** Returns the keys of the events that the list showed first; times in epoch ms. */
export function readListedEvents(
  db: Queryable,
  zoneId: number,
  span: Span,
): Promise<{ occurredAt: number; logId: string }[]> {
  return db
    .select({ occurredAt: epochMs(e.occurredAt), logId: e.logId })
    .from(e)
    .where(sql`${isWithin(zoneId, span)} and ${e.route} = 'list'`);
}

function isWithin(zoneId: number, { from, to }: Span): SQL {
  return sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${new Date(from)} and ${e.occurredAt} < ${new Date(to)}`;
}
