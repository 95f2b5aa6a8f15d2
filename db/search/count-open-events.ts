import { count, getTableName, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { DAY_MS, HOUR_MS, LAST_MS } from "#lib/units.ts";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage-windows.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { toCondition } from "./search-condition.ts";
import type { EventQuery } from "./search-query.ts";

const w = alias(coverageWindows, "w");
const e = alias(wafEvents, "e");

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
  const found = await tx
    .select({ first: epochMs(sql`min(${e.occurredAt})`), total: count() })
    .from(e)
    .where(toCondition(zoneId, query, spans))
    .groupBy(sql`${e}.tableoid`);
  return found.map(({ first, total }) => {
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
        sql`(${w.startsAt} >= ${new Date(from)} and ${w.startsAt} < ${new Date(Math.min(to, LAST_MS))})`,
    );
    const found = await tx.execute<{ from: number; total: number }>(sql`
      select ${epochMs(w.startsAt)} as from, ${w.storedCount}::float8 as total
      from ${coverageWindows} ${w}
      where ${w.zoneId} = ${zoneId}::integer and ${w.storedCount} > 0 and (${sql.join(isInside, sql` or `)})
        and to_char(${w.startsAt} at time zone 'UTC', 'YYYYMMDD') in (
          select right(c.relname, 8) from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = ${getTableName(wafEvents)}::regclass)`);
    counts.push(...found.rows.map(({ from, total }) => ({ from, to: from + HOUR_MS, total })));
  }
  for (const part of cut) {
    const [counted] = await tx
      .select({ total: count() })
      .from(e)
      .where(toCondition(zoneId, { ...part, clauses: [] }));
    const total = counted?.total ?? 0;
    if (total > 0) counts.push({ ...part, total });
  }
  return counts;
}
